#include "cli/usage.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <vector>

#include "strait/base/text.h"

namespace strait::cli {
namespace {

std::vector<std::string> verbs_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

const CLI::App* find_verb(const CLI::App& app, const std::string& name) {
  const auto verbs = app.get_subcommands([&](const CLI::App* verb) { return verb->get_name() == name; });
  return verbs.empty() ? nullptr : verbs.front();
}

std::vector<std::string> flags_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// `strait codec apply`
std::string full_name(const CLI::App& app) {
  const auto* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

/// What stands on the command line for an option or an argument.
std::string word_of(const CLI::Option& option) {
  if (option.get_positional()) return option.get_type_name();
  return fmt::format("{} {}", option.get_name(), option.get_type_name());
}

/// A description as it stands in the middle of a sentence.
std::string within_sentence(std::string text) {
  const auto at = [&](size_t place) {
    return place < text.size() ? static_cast<unsigned char>(text[place]) : 0;
  };
  if (std::islower(at(1)) != 0) text[0] = static_cast<char>(std::tolower(at(0)));  // and no abbreviation
  return text;
}

/// Says which required option or argument of a verb is missing; empty where none is.
std::string missing_of(const CLI::App& verb) {
  for (const auto* option : verb.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    return fmt::format("{} needs {}, {}; see {} --help", full_name(verb), word_of(*option),
                       within_sentence(option->get_description()), full_name(verb));
  }
  return "";
}

/// What a verb runs that stands behind --, such as launch's, takes its flags with it.
std::string hint_of(const CLI::App& verb) {
  return verb.get_option_no_throw("command") == nullptr ? "" : "; what it runs stands behind --";
}

/// `--in=FILE` is the flag --in, `-n4` the flag -n.
std::string flag_of(const std::string& argument) {
  return argument.starts_with("--") ? argument.substr(0, argument.find('=')) : argument.substr(0, 2);
}

/// Names the first verb or flag that does not exist; empty where all do. Moves `verb` on to the last verb.
std::string unknown_word(const CLI::App*& verb, std::span<const std::string> arguments) {
  for (size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const auto& argument = arguments[i];
    if (argument.size() > 1 && argument.front() == '-') {
      const auto* option = verb->get_option_no_throw(flag_of(argument));
      if (option == nullptr) {
        return fmt::format("{} has no flag {}{}{}; see {} --help", full_name(*verb), flag_of(argument),
                           suggestion(flag_of(argument), flags_of(*verb)), hint_of(*verb), full_name(*verb));
      }
      // Its value is the next argument, which is not to be taken for a verb.
      if (option->get_items_expected_min() > 0 && flag_of(argument) == argument) ++i;
      continue;
    }
    const auto verbs = verbs_of(*verb);
    if (verbs.empty()) continue;
    const auto* next = find_verb(*verb, argument);
    if (next == nullptr) {
      return fmt::format("{} has no verb \"{}\"{}; expected one of: {}", full_name(*verb), argument,
                         suggestion(argument, verbs), list_of(verbs));
    }
    verb = next;
  }
  return "";
}

}  // namespace

std::string unknown_word(const CLI::App& app, std::span<const std::string> arguments) {
  const CLI::App* verb = &app;
  return unknown_word(verb, arguments);
}

std::string explain_usage(const CLI::App& app, std::span<const std::string> arguments) {
  const CLI::App* verb = &app;
  if (auto unknown = unknown_word(verb, arguments); !unknown.empty()) return unknown;
  const auto verbs = verbs_of(*verb);
  if (verbs.empty()) return missing_of(*verb);
  return fmt::format("expected a verb behind \"{0}\", one of: {1}; see {0} --help", full_name(*verb),
                     list_of(verbs));
}

}  // namespace strait::cli
