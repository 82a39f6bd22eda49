#include "strait/tokenizer/tokenizer_files.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"
#include "strait/tokenizer/vocabulary.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

using Json = nlohmann::json;

constexpr std::string_view kVersionLine = "#version";

/// The member `key` of an object of the file, of that type. `path` is the key's in the whole file.
const Json& member(const std::string& file, const Json& object, const char* key, Json::value_t type,
                   std::string_view path) {
  const auto found = object.find(key);
  if (found == object.end()) throw InputError("{}: has no {}", file, path);
  if (found->type() != type) {
    throw InputError("{}: {} is a JSON {}, expected a JSON {}", file, path, found->type_name(),
                     Json(type).type_name());
  }
  return *found;
}

int32_t id_in(const std::string& file, const std::string& token, const Json& id) {
  constexpr auto kMost = std::numeric_limits<int32_t>::max();
  if (id.is_number_unsigned() && id.get<uint64_t>() <= kMost) return id.get<int32_t>();
  throw InputError("{}: the id of token {} is {}, expected an integer from 0 on", file, quoted_short(token),
                   shortened(id.dump()));
}

void add_vocabulary(const Json& object, Vocabulary& vocabulary) {
  for (const auto& [token, id] : object.items()) {
    vocabulary.add_shown(token, id_in(vocabulary.file(), token, id));
  }
}

/// Collects the merges, in order of rank. `where` names the file and the line or number of a merge.
class MergeReader {
 public:
  explicit MergeReader(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  /// `left right`
  void add(const std::string& where, std::string_view line) {
    const auto parts = split(line, ' ');
    if (parts.size() != 2) {
      throw InputError("{}: expected two tokens with a space between them, found {}", where,
                       quoted_short(line));
    }
    add(where, parts[0], parts[1]);
  }

  void add(const std::string& where, const std::string& left, const std::string& right) {
    const BpeModel::Merge merge{id_of(where, left), id_of(where, right), id_of(where, left + right)};
    if (!pairs_.emplace(merge.left, merge.right).second) {
      throw InputError("{}: the merge of {} and {} is there already", where, quoted_short(left),
                       quoted_short(right));
    }
    merges_.push_back(merge);
  }

  std::vector<BpeModel::Merge> take() { return std::move(merges_); }

 private:
  int32_t id_of(const std::string& where, const std::string& shown) const {
    const auto bytes = bytes_of_alphabet(shown);
    const auto id = bytes ? vocabulary_.find(*bytes) : std::nullopt;
    if (!id) throw InputError("{}: {} is no token of {}", where, quoted_short(shown), vocabulary_.file());
    return *id;
  }

  const Vocabulary& vocabulary_;
  std::set<std::pair<int32_t, int32_t>> pairs_;
  std::vector<BpeModel::Merge> merges_;
};

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

BpeModel parse_vocab_and_merges(const NamedText& vocab_file, const NamedText& merges_file) {
  const Json vocab = parse_json(vocab_file.text, vocab_file.name);
  if (!vocab.is_object()) {
    throw InputError("{}: is a JSON {}, expected an object of tokens and ids", vocab_file.name,
                     vocab.type_name());
  }
  Vocabulary vocabulary(vocab_file.name);
  add_vocabulary(vocab, vocabulary);
  BpeModel model{vocabulary.finish(), {}};
  MergeReader merges(vocabulary);
  read_merge_lines(merges_file, merges);
  model.merges = merges.take();
  return model;
}

/// Refuses what would give other tokens than GPT-2's rules; a setting that is not there, or null, is none.
/// Without a pre-tokenizer the vocabulary would be one of characters, not of bytes.
void check_settings(const std::string& file, const Json& root) {
  const std::array<std::pair<const char*, Json>, 10> settings = {{{"/normalizer", nullptr},
                                                                  {"/pre_tokenizer/type", "ByteLevel"},
                                                                  {"/pre_tokenizer/add_prefix_space", false},
                                                                  {"/pre_tokenizer/use_regex", true},
                                                                  {"/model/type", "BPE"},
                                                                  {"/model/dropout", nullptr},
                                                                  {"/model/continuing_subword_prefix", ""},
                                                                  {"/model/end_of_word_suffix", ""},
                                                                  {"/model/byte_fallback", false},
                                                                  {"/model/ignore_merges", false}}};
  for (const auto& [path, expected] : settings) {
    const Json::json_pointer pointer(path);
    const Json found = root.contains(pointer) ? root.at(pointer) : Json();
    const bool may_lack = std::string_view(path) != "/pre_tokenizer/type";
    if (found == expected || (found.is_null() && may_lack)) continue;
    throw InputError("{}: {} is {}, expected {} as in the byte-level encoding of GPT-2", file, path + 1,
                     shortened(found.dump()), expected.dump());
  }
}

void add_added_tokens(const std::string& file, const Json& root, Vocabulary& vocabulary) {
  if (!root.contains("added_tokens")) return;
  for (const auto& token : member(file, root, "added_tokens", Json::value_t::array, "added_tokens")) {
    if (!token.is_object())
      throw InputError("{}: added_tokens has {}, expected objects", file, token.type_name());
    const auto& content = member(file, token, "content", Json::value_t::string, "content of an added token");
    const auto& id = member(file, token, "id", Json::value_t::number_unsigned, "id of an added token");
    const auto text = content.get<std::string>();
    vocabulary.add(text, id_in(file, text, id));
  }
}

void read_json_merges(const std::string& file, const Json& list, MergeReader& merges) {
  for (size_t i = 0; i < list.size(); ++i) {
    const auto where = fmt::format("{}: merge {}", file, i);
    const Json& merge = list[i];
    if (merge.is_string()) {
      merges.add(where, merge.get<std::string>());
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      merges.add(where, merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      throw InputError("{}: expected a text or a pair of texts, found {}", where, shortened(merge.dump()));
    }
  }
}

BpeModel parse_tokenizer_json(const NamedText& file) {
  const Json root = parse_json(file.text, file.name);
  if (!root.is_object()) throw InputError("{}: is a JSON {}, expected an object", file.name, root.type_name());
  check_settings(file.name, root);
  const auto& model = member(file.name, root, "model", Json::value_t::object, "model");
  Vocabulary vocabulary(file.name);
  add_vocabulary(member(file.name, model, "vocab", Json::value_t::object, "model.vocab"), vocabulary);
  add_added_tokens(file.name, root, vocabulary);
  BpeModel result{vocabulary.finish(), {}};
  MergeReader merges(vocabulary);
  read_json_merges(file.name, member(file.name, model, "merges", Json::value_t::array, "model.merges"), merges);
  result.merges = merges.take();
  return result;
}

}  // namespace

std::vector<NamedText> read_tokenizer_files(const fs::path& folder) {
  const auto read = [&](const char* name) {
    return NamedText{(folder / name).string(), read_whole(folder / name, kJsonBytesMost)};
  };
  if (is_there(folder / "vocab.json") || is_there(folder / "merges.txt")) {
    return {read("vocab.json"), read("merges.txt")};
  }
  if (!is_there(folder / "tokenizer.json")) {
    throw InputError("{}: holds no tokenizer, expected vocab.json and merges.txt, or tokenizer.json",
                     folder.string());
  }
  return {read("tokenizer.json")};
}

BpeModel parse_tokenizer_files(std::span<const NamedText> files) {
  STRAIT_CHECK(files.size() == 1 || files.size() == 2, "a tokenizer has 1 or 2 files, not {}", files.size());
  return files.size() == 1 ? parse_tokenizer_json(files[0]) : parse_vocab_and_merges(files[0], files[1]);
}

}  // namespace strait
