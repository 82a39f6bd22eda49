#include "strait/tokenizer/tokenizer_files.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"
#include "strait/tokenizer/bpe_parts.h"
#include "strait/tokenizer/tokenizer_json.h"
#include "strait/tokenizer/vocabulary.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr std::string_view kVersionLine = "#version";

void read_merge_lines(const NamedText& file, MergeReader& merges) {
  if (const size_t good = well_formed_prefix(file.text); good < file.text.size()) {
    throw InputError("{}: is not UTF-8 at offset {}", file.name, good);
  }
  auto lines = split(file.text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i == 0 && lines[i].starts_with(kVersionLine)) continue;
    merges.add(fmt::format("{}:{}", file.name, i + 1), lines[i]);
  }
}

/// The tokens that are neither a byte nor made by a merge.
std::vector<AddedToken> never_made(const BpeModel& model) {
  std::vector<bool> made(model.tokens.size());
  for (const auto& merge : model.merges) made[static_cast<size_t>(merge.result)] = true;
  std::vector<AddedToken> tokens;
  for (size_t id = 0; id < made.size(); ++id) {
    if (made[id] || model.tokens[id].size() == 1) continue;
    tokens.push_back({.text = model.tokens[id], .id = static_cast<int32_t>(id)});
  }
  return tokens;
}

BpeModel parse_vocab_and_merges(const NamedText& vocab_file, const NamedText& merges_file) {
  const Json vocab = parse_json(vocab_file.text, vocab_file.name);
  if (!vocab.is_object()) {
    throw InputError("{}: is a JSON {}, expected an object of tokens and ids", vocab_file.name,
                     vocab.type_name());
  }
  Vocabulary vocabulary(vocab_file.name);
  add_vocabulary(vocab, vocabulary);
  vocabulary.check_has_no_gaps();
  vocabulary.check_has_bytes();
  BpeModel model;
  model.tokens = vocabulary.finish();
  model.byte_tokens = vocabulary.byte_tokens();
  MergeReader merges(vocabulary);
  read_merge_lines(merges_file, merges);
  model.merges = merges.take();
  model.added_tokens = never_made(model);
  sort_longest_first(model.added_tokens);
  return model;
}

/// What Hugging Face's tokenizer_config.json in the folder says of a key; null where there is none.
Json setting_in(const fs::path& folder, const char* key) {
  const auto path = folder / "tokenizer_config.json";
  if (!has_file(path)) return {};
  const Json root = parse_json(read_whole(path, kJsonBytesMost), path.string());
  return root.is_object() && root.contains(key) ? root.at(key) : Json();
}

/// The texts of tokens that files in the folder add to vocab.json.
std::vector<std::string> added_beside(const fs::path& folder) {
  std::vector<std::string> texts;
  const auto add = [&](const Json& token) {
    const Json text = token.is_object() ? token.value("content", Json()) : token;
    if (text.is_string()) texts.push_back(text.get<std::string>());
  };
  for (const char* key : {"added_tokens_decoder", "additional_special_tokens"}) {
    const Json tokens = setting_in(folder, key);
    if (!tokens.is_structured()) continue;
    for (const Json& token : tokens) add(token);
  }
  const auto path = folder / "added_tokens.json";
  if (!has_file(path)) return texts;
  const Json tokens = parse_json(read_whole(path, kJsonBytesMost), path.string());
  for (const auto& [text, id] : tokens.items()) texts.push_back(text);
  return texts;
}

/// Refuses vocab.json and merges.txt in a folder that says more of its tokenizer than they do.
void check_beside(const fs::path& folder, const NamedText& vocab_file) {
  const Json kind = setting_in(folder, "tokenizer_class");
  if (!kind.is_null() && kind != "GPT2Tokenizer" && kind != "GPT2TokenizerFast") {
    throw InputError(
        "{}: vocab.json and merges.txt are of a {}, which may cut texts otherwise than GPT-2; expected its "
        "tokenizer.json",
        folder.string(), shortened(kind.dump()));
  }
  if (setting_in(folder, "add_prefix_space") == true)
    throw InputError("{}: add_prefix_space of tokenizer_config.json is true, expected false", folder.string());
  const auto added = added_beside(folder);
  if (added.empty()) return;
  const Json vocab = parse_json(vocab_file.text, vocab_file.name);
  for (const auto& text : added) {
    if (vocab.contains(text)) continue;
    throw InputError("{}: token {} is added to those of vocab.json; expected a tokenizer.json, which has both",
                     folder.string(), in_quotes(text));
  }
}

}  // namespace

bool holds_tokenizer(const fs::path& folder) {
  return is_there(folder / "tokenizer.json") || is_there(folder / "vocab.json") ||
         is_there(folder / "merges.txt");
}

std::vector<NamedText> read_tokenizer_files(const fs::path& folder) {
  const auto read = [&](const char* name) {
    return NamedText{(folder / name).string(), read_whole(folder / name, kJsonBytesMost)};
  };
  if (!holds_tokenizer(folder)) {
    throw InputError("{}: holds no tokenizer, expected tokenizer.json, or vocab.json and merges.txt",
                     folder.string());
  }
  if (is_there(folder / "tokenizer.json")) return {read("tokenizer.json")};
  std::vector<NamedText> files = {read("vocab.json"), read("merges.txt")};
  check_beside(folder, files.front());
  return files;
}

std::string end_of_text_of(const fs::path& folder) {
  Json token = setting_in(folder, "eos_token");
  if (token.is_object()) token = token.value("content", Json());
  return token.is_string() ? token.get<std::string>() : "<|endoftext|>";
}

BpeModel parse_tokenizer_files(std::span<const NamedText> files) {
  STRAIT_CHECK(files.size() == 1 || files.size() == 2, "a tokenizer has 1 or 2 files, not {}", files.size());
  return files.size() == 1 ? parse_tokenizer_json(files[0]) : parse_vocab_and_merges(files[0], files[1]);
}

std::string to_tokenizer_json(std::span<const NamedText> files, std::vector<AddedToken> added_tokens) {
  if (files.size() == 1) return files.front().text;
  std::ranges::sort(added_tokens, {}, &AddedToken::id);
  const Json vocab = parse_json(files.front().text, files.front().name);
  Json added = Json::array();
  for (const auto& token : added_tokens) {
    // One that the alphabet writes otherwise is found by no text there, and has no place among these.
    if (!vocab.contains(token.text) || vocab.at(token.text) != token.id) continue;
    added.push_back({{"id", token.id},
                     {"content", token.text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  Json merges = Json::array();
  const std::string& list = files.back().text;
  for (const auto& line : split(std::string_view(list), '\n')) {
    if (!line.empty() && !(merges.empty() && line.starts_with(kVersionLine))) merges.push_back(line);
  }
  const Json bytes = {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return Json({{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"added_tokens", added},
               {"normalizer", nullptr},
               {"pre_tokenizer", bytes},
               {"post_processor", nullptr},
               {"decoder", bytes},
               {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", merges}}}})
      .dump();
}

}  // namespace strait
