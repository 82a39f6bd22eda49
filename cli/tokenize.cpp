#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/tokenizer/tokenizer.h"

namespace strait::cli {
namespace {

struct TokenizeOptions {
  std::string tokenizer;
  std::string file;
  bool json = false;
  bool decode = false;
  bool special = false;
};

std::string read_input(const std::string& file) {
  if (file != "-") return read_whole(file);
  std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  if (std::cin.bad()) throw Error("cannot read standard input");
  return input;
}

std::vector<int64_t> ids_of_json(const std::string& input, const std::string& file) {
  const auto json = parse_json(input, file);
  const auto& list = json.is_object() && json.contains("ids") ? json["ids"] : json;
  const bool good =
      list.is_array() && std::ranges::all_of(list, [](const auto& id) {
        return id.is_number_integer() && (!id.is_number_unsigned() || id.template get<uint64_t>() <= INT64_MAX);
      });
  if (!good) throw InputError("{}: expected a JSON array of token ids, or an object with one as \"ids\"", file);
  return list.get<std::vector<int64_t>>();
}

/// Ids as `strait tokenize --json` prints them, as a JSON array, or as numbers between white space.
std::vector<int64_t> parse_ids(const std::string& input, const std::string& file) {
  const size_t begin = input.find_first_not_of(" \t\r\n");
  if (begin != std::string::npos && (input[begin] == '{' || input[begin] == '['))
    return ids_of_json(input, file);
  std::vector<int64_t> ids;
  std::istringstream words(input);
  for (std::string word; words >> word;) {
    ids.push_back(parse_integer(word, fmt::format("{}: token {}", file, ids.size()), 0, INT32_MAX));
  }
  return ids;
}

std::string decoded_text(const std::vector<int64_t>& ids, const Tokenizer& tokenizer, const std::string& file) {
  try {
    return tokenizer.decode(ids);
  } catch (const InputError& error) {
    throw InputError("{}: {}", file, error.what());
  }
}

std::string summary_of(std::string_view text, size_t tokens) {
  // Every byte but the second and further ones of a character in UTF-8.
  const auto characters = std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
  std::string summary = fmt::format("{} tokens, {} bytes, {} characters", tokens, text.size(), characters);
  if (tokens > 0) {
    const auto a_token = [&](auto count) { return static_cast<double>(count) / static_cast<double>(tokens); };
    summary += fmt::format("; {:.3f} bytes and {:.3f} characters per token", a_token(text.size()),
                           a_token(characters));
  }
  return summary + "\n";
}

int run_tokenize(const TokenizeOptions& options) {
  const Tokenizer tokenizer = load_tokenizer(options.tokenizer);
  const std::string input = read_input(options.file);
  if (options.decode) {
    print_bytes(decoded_text(parse_ids(input, options.file), tokenizer, options.file));
    return 0;
  }
  const auto ids = tokenizer.encode(input, options.special ? SpecialTokens::as_tokens : SpecialTokens::as_text);
  print(options.json ? fmt::format("{{\"tokens\":{},\"ids\":[{}]}}\n", ids.size(), fmt::join(ids, ","))
                     : summary_of(input, ids.size()));
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto* verb = app.add_subcommand("tokenize", "Turn a text into tokens, or tokens into their text");
  const auto options = std::make_shared<TokenizeOptions>();
  verb->add_option("--tokenizer", options->tokenizer,
                   "Folder that holds vocab.json and merges.txt, or tokenizer.json")
      ->required()
      ->type_name("DIR");
  verb->add_option("file", options->file, "The text, encoded as a whole; - for standard input")
      ->required()
      ->type_name("FILE");
  auto* json = verb->add_flag("--json", options->json, "Print one JSON object, with the ids");
  auto* special = verb->add_flag("--special", options->special,
                                 "Encode <|endoftext|> and other special tokens in the text as tokens");
  verb->add_flag("--decode", options->decode,
                 "FILE holds ids, as --json prints them or as numbers; print the bytes that they stand for")
      ->excludes(json)
      ->excludes(special);
  verb->callback([&action, options] { action = [options] { return run_tokenize(*options); }; });
}

}  // namespace strait::cli
