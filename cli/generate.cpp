#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/config_argument.h"
#include "cli/flag_checks.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/utf8.h"
#include "strait/config/published.h"
#include "strait/data/kinds.h"
#include "strait/data/text_data.h"
#include "strait/experiment/run.h"
#include "strait/tokenizer/tokenizer.h"
#include "strait/train/generator.h"

namespace strait::cli {
namespace {

constexpr size_t kCharacterBytes = 4;  ///< at most, in UTF-8

struct GenerateFlags {
  std::string config;
  std::vector<std::string> overrides;
  std::string weights;
  std::string prompt;
  int64_t tokens = 100;
  SamplingOptions sampling;
  std::string compression = "both";
  bool json = false;
};

/// What special tokens in a prompt are: what they are in the texts of the configuration.
SpecialTokens special_in(const Config& config) {
  const Settings& data = config.data.settings;
  const bool are_tokens = data.has("special_tokens") && data.flag("special_tokens");
  return are_tokens ? SpecialTokens::as_tokens : SpecialTokens::as_text;
}

/// The tokens that begin the text: those before a prompt and the prompt's, or the one that stands between
/// texts.
std::vector<int64_t> begin_of(const std::string& prompt, const Tokenizer& tokenizer, SpecialTokens special,
                              std::optional<int32_t> end_of_text) {
  const auto prefix = tokenizer.prefix();
  std::vector<int64_t> begin(prefix.begin(), prefix.end());
  const auto ids = tokenizer.encode(prompt, special);
  begin.insert(begin.end(), ids.begin(), ids.end());
  if (!begin.empty()) return begin;
  if (!end_of_text)
    throw InputError("--prompt: expected a text, since the tokenizer has no token that ends one");
  return {*end_of_text};
}

/// Prints each token as it comes, unless the result is one object at the end.
std::string continue_text(Generator& generator, const GenerateFlags& flags, const Tokenizer& tokenizer,
                          std::vector<int64_t> begin, bool compressed, std::optional<int32_t> end_of_text) {
  std::string text;
  size_t printed = 0;
  const auto print_until = [&](size_t end) {
    if (flags.json) return;
    print(std::string_view(text).substr(printed, end - printed));
    flush_output();
    printed = end;
  };
  const auto on_token = [&](int64_t token) {
    if (token == end_of_text) return false;
    text += tokenizer.bytes_of(token);
    // A token may end within a character, whose other bytes the next ones bring.
    const size_t whole = printed + well_formed_prefix(std::string_view(text).substr(printed));
    print_until(text.size() - whole < kCharacterBytes ? whole : text.size());
    return true;
  };
  SamplingOptions sampling = flags.sampling;
  sampling.tokens = tokenizer.vocab_size();  // models may have more embeddings than there are tokens
  generator.generate(std::move(begin), flags.tokens, compressed, sampling, on_token);
  print_until(text.size());
  return text;
}

int run_generate(const GenerateFlags& flags) {
  const Config config = load_config(config_file(flags.config), flags.overrides);
  if (!is_text(config.data))
    throw InputError("{}: expected a model of text, found {}", flags.config, config.model.kind);
  const std::string asked = weights_asked(flags.weights, flags.config);
  const std::filesystem::path weights = asked.empty() ? initial_weights(config) : weights_at(asked);
  if (weights.empty()) throw InputError("--weights: expected a file, since model.init names none");
  const auto folder = tokenizer_folder(config.data);
  const Tokenizer tokenizer = load_tokenizer(folder);
  const auto end_of_text = tokenizer.added_token(end_of_text_of(folder));
  const auto begin = begin_of(flags.prompt, tokenizer, special_in(config), end_of_text);
  const Config chosen = with_chosen_codecs(config, weights);
  Generator generator(load_network(chosen, weights), chosen.model.cuts, chosen.compression,
                      chosen.model.settings.integer("context"));
  std::string texts = fmt::format("{{\"prompt\":{}", json_string(flags.prompt));
  for (const std::string side : {"off", "on"}) {
    if (flags.compression != side && flags.compression != "both") continue;
    if (!flags.json) print(fmt::format("compression {}:\n{}", side, flags.prompt));
    const std::string text = continue_text(generator, flags, tokenizer, begin, side == "on", end_of_text);
    texts += fmt::format(",\"{}\":{}", side, json_string(text));
    if (!flags.json) print("\n");
  }
  if (flags.json) print(texts + "}\n");
  return 0;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  auto* generate =
      app.add_subcommand("generate", "Let a language model continue a text, with compression off and on");
  auto flags = std::make_shared<GenerateFlags>();
  add_config_argument(*generate, flags->config)->required();
  generate
      ->add_option(
          "--weights", flags->weights,
          "Weights under Hugging Face's names, or a folder with model.safetensors; default: those of the run's "
          "folder, else model.init")
      ->type_name("FILE.safetensors");
  generate
      ->add_option(
          "--prompt", flags->prompt,
          "The text to continue, in which special tokens are what data.special_tokens says; default: none")
      ->type_name("TEXT");
  generate->add_option("--tokens", flags->tokens, "How many tokens at most")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  generate
      ->add_option("--temperature", flags->sampling.temperature,
                   "Divides the logits; 0: always the likeliest token")
      ->check(number_from_to(0, 1e6))
      ->capture_default_str();
  generate->add_option("--top-k", flags->sampling.top_k, "Sample from the k most likely tokens; 0: from all")
      ->check(CLI::Range(0, 1 << 30))
      ->capture_default_str();
  generate->add_option("--seed", flags->sampling.seed, "Sampling seed")
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()))
      ->capture_default_str();
  generate->add_option("--compression", flags->compression, "off, on or both")
      ->check(CLI::IsMember({"off", "on", "both"}))
      ->capture_default_str();
  generate->add_option("--set", flags->overrides, "Change a key (may be repeated)")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  generate->add_flag("--json", flags->json, "Print one JSON object");
  generate->callback([&action, flags] { action = [flags] { return run_generate(*flags); }; });
}

}  // namespace strait::cli
