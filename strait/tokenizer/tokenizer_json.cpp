#include "strait/tokenizer/tokenizer_json.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/tokenizer/bpe_parts.h"
#include "strait/tokenizer/normalizer.h"
#include "strait/tokenizer/vocabulary.h"

namespace strait {
namespace {

using Json = nlohmann::json;

constexpr const char* kMarkedSpace = "\xe2\x96\x81";  // U+2581

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

/// What a file or a part of it says at a JSON pointer; null where it says nothing.
Json value_at(const Json& root, const char* pointer) {
  const Json::json_pointer place(pointer);
  return root.contains(place) ? root.at(place) : Json();
}

/// Refuses a part that says something else there than one of these; `part` is its name in the file.
void expect(const std::string& file, const std::string& part, const Json& root, const char* pointer,
            const std::vector<Json>& expected) {
  const Json found = value_at(root, pointer);
  if (std::ranges::find(expected, found) != expected.end()) return;
  std::vector<std::string> texts;
  for (const Json& value : expected) {
    if (!value.is_null()) texts.push_back(value.dump());
  }
  throw InputError("{}: {}{} is {}, expected {}", file, part, pointer, shortened(found.dump()),
                   texts.empty() ? "none" : either_of(texts));
}

/// Refuses what would give other tokens than the model's settings that strait knows. A setting that is not
/// there, or null, is none.
void check_model(const std::string& file, const Json& model, bool of_characters) {
  const auto check = [&](const char* pointer, const Json& expected) {
    expect(file, "model", model, pointer, {expected, nullptr});
  };
  check("/type", "BPE");
  check("/dropout", 0.0);
  check("/continuing_subword_prefix", "");
  check("/end_of_word_suffix", "");
  expect(file, "model", model, "/byte_fallback", {true, false, nullptr});
  if (of_characters) check("/ignore_merges", false);
  expect(file, "model", model, "/ignore_merges", {true, false, nullptr});
}

/// A pattern of a step, `{"Regex": ...}` or `{"String": ...}`.
PiecePattern read_pattern(const std::string& file, const std::string& part, const Json& step) {
  const Json regex = value_at(step, "/pattern/Regex");
  const Json text = value_at(step, "/pattern/String");
  const std::string place = part + "/pattern";
  try {
    if (regex.is_string()) return PiecePattern::of_oniguruma(regex.get<std::string>());
    if (text.is_string()) return PiecePattern::of_text(text.get<std::string>());
  } catch (const InputError& error) {
    throw InputError("{}: {}: {}", file, place, error.what());
  }
  throw InputError("{}: {} is {}, expected an object with Regex or String", file, place,
                   shortened(value_at(step, "/pattern").dump()));
}

/// A part of a file, and its name there.
struct Part {
  std::string name;
  Json value;
};

/// The parts of a normalizer or pre-tokenizer in order, with those of a Sequence in its place; none where the
/// file says nothing there. `list` is the name that a Sequence has for its own.
std::vector<Part> parts_of(const std::string& file, Part whole, const char* list) {
  if (whole.value.is_null()) return {};
  if (!whole.value.is_object())
    throw InputError("{}: {} is {}, expected an object", file, whole.name, shortened(whole.value.dump()));
  if (value_at(whole.value, "/type") != "Sequence") return {std::move(whole)};
  const auto name = fmt::format("{}/{}", whole.name, list);
  const auto found = whole.value.find(list);
  if (found == whole.value.end() || !found->is_array())
    throw InputError("{}: {} is {}, expected an array", file, name,
                     found == whole.value.end() ? "not there" : shortened(found->dump()));
  std::vector<Part> parts;
  for (size_t i = 0; i < found->size(); ++i) {
    for (auto& part : parts_of(file, {fmt::format("{}/{}", name, i), found->at(i)}, list))
      parts.push_back(std::move(part));
  }
  return parts;
}

/// What cuts the text in a step, but for the last.
PiecePattern read_step(const std::string& file, const Part& step) {
  expect(file, step.name, step.value, "/type", {"Split", "Digits"});
  if (value_at(step.value, "/type") == "Digits") {
    expect(file, step.name, step.value, "/individual_digits", {true, false});
    const bool one_by_one = value_at(step.value, "/individual_digits") == true;
    return PiecePattern::of_oniguruma(one_by_one ? "\\p{N}" : "\\p{N}+");
  }
  expect(file, step.name, step.value, "/behavior", {"Isolated", "Removed"});
  const bool removes = value_at(step.value, "/behavior") == "Removed";
  expect(file, step.name, step.value, "/invert",
         removes ? std::vector<Json>{true} : std::vector<Json>{false, nullptr});
  const PiecePattern pattern = read_pattern(file, step.name, step.value);
  return removes ? pattern.alone() : pattern;
}

/// The steps that cut a text into pieces of bytes, one pattern for each that does. The last one turns bytes
/// into the alphabet of the vocabulary.
std::vector<PiecePattern> read_pre_tokenizer(const std::string& file, const Json& root) {
  auto steps = parts_of(file, {"pre_tokenizer", value_at(root, "/pre_tokenizer")}, "pretokenizers");
  if (steps.empty()) throw InputError("{}: has no step in pre_tokenizer, expected ByteLevel at its end", file);
  const auto [name, last] = std::move(steps.back());
  steps.pop_back();
  std::vector<PiecePattern> patterns;
  patterns.reserve(steps.size() + 1);
  for (const auto& step : steps) patterns.push_back(read_step(file, step));
  expect(file, name, last, "/type", {"ByteLevel"});
  expect(file, name, last, "/add_prefix_space", {false, nullptr});
  expect(file, name, last, "/use_regex", {true, false, nullptr});
  if (value_at(last, "/use_regex") != false) patterns.push_back(PiecePattern::of_gpt2());
  return patterns;
}

/// Of a tokenizer of bytes.
Normalizer read_normalizer(const std::string& file, const Json& root) {
  const auto parts = parts_of(file, {"normalizer", value_at(root, "/normalizer")}, "normalizers");
  for (const auto& part : parts) expect(file, part.name, part.value, "/type", {"NFC"});
  return {.composes = !parts.empty()};
}

/// Where a Metaspace puts a space.
FirstSpace first_space_of(const std::string& file, const Part& metaspace) {
  const auto& [name, step] = metaspace;
  expect(file, name, step, "/replacement", {kMarkedSpace});
  expect(file, name, step, "/prepend_scheme", {"always", "first", "never", nullptr});
  expect(file, name, step, "/add_prefix_space", {true, false, nullptr});
  const Json scheme = value_at(step, "/prepend_scheme");
  if (scheme == "never" || value_at(step, "/add_prefix_space") == false) return FirstSpace::none;
  return scheme == "first" ? FirstSpace::of_text : FirstSpace::where_missing;
}

/// Whether the normalizer, of a Replace alone or behind a Prepend, turns spaces into U+2581, and no more.
bool marks_spaces(const std::string& file, std::span<const Part> steps) {
  if (steps.empty() || steps.size() > 2) return false;
  if (steps.size() == 2) {
    expect(file, steps[0].name, steps[0].value, "/type", {"Prepend"});
    expect(file, steps[0].name, steps[0].value, "/prepend", {kMarkedSpace});
  }
  const auto& [name, last] = steps.back();
  expect(file, name, last, "/type", {"Replace"});
  expect(file, name, last, "/pattern", {Json{{"String", " "}}});
  expect(file, name, last, "/content", {kMarkedSpace});
  return true;
}

/// What a tokenizer of characters does with spaces, in the normalizer or in the pre-tokenizer. Without a
/// pattern a text is one piece.
void read_spaces(const std::string& file, const Json& root, BpeModel& model) {
  const auto forms = parts_of(file, {"normalizer", value_at(root, "/normalizer")}, "normalizers");
  const auto cuts = parts_of(file, {"pre_tokenizer", value_at(root, "/pre_tokenizer")}, "pretokenizers");
  model.normalizer.marks_spaces = true;
  model.patterns.clear();
  if (cuts.empty() && marks_spaces(file, forms)) {
    model.normalizer.marks_early = true;
    if (forms.size() == 2) model.normalizer.first_space = FirstSpace::of_parts;
  } else if (cuts.size() == 1 && forms.empty()) {
    const auto& [name, step] = cuts.front();
    expect(file, name, step, "/type", {"Metaspace"});
    model.normalizer.first_space = first_space_of(file, cuts.front());
    expect(file, name, step, "/split", {true, false, nullptr});
    if (value_at(step, "/split") != false) model.patterns = {PiecePattern::of_oniguruma(" ?[^ ]+| ")};
  } else {
    throw InputError(
        "{}: normalizer has {} and pre_tokenizer {} steps, expected with byte_fallback a Replace, alone or "
        "behind a Prepend, in normalizer, or a Metaspace in pre_tokenizer",
        file, forms.size(), cuts.size());
  }
}

/// Cuts in front of runs of spaces where no merge crosses such a place: that changes no token, and lets an
/// encoder remember pieces.
void cut_at_spaces(BpeModel& model) {
  const auto bytes = [&](int32_t id) { return std::string_view(model.tokens[static_cast<size_t>(id)]); };
  const auto crosses = [&](const BpeModel::Merge& merge) {
    return bytes(merge.left).back() != ' ' && bytes(merge.right).front() == ' ';
  };
  if (model.patterns.empty() && std::ranges::none_of(model.merges, crosses))
    model.patterns = {PiecePattern::of_oniguruma(" *[^ ]+| +")};
}

/// The texts of tokens that are normalized have the normalizer's first form. Of two entries for one token the
/// later counts.
std::vector<AddedToken> read_added_tokens(const std::string& file, const Json& root,
                                          const Normalizer& normalizer, Vocabulary& vocabulary) {
  std::vector<AddedToken> tokens;
  std::map<int32_t, size_t> places;  // in tokens
  if (!root.contains("added_tokens")) return tokens;
  for (const auto& token : member(file, root, "added_tokens", Json::value_t::array, "added_tokens")) {
    if (!token.is_object())
      throw InputError("{}: added_tokens has {}, expected objects", file, token.type_name());
    const auto& content = member(file, token, "content", Json::value_t::string, "content of an added token");
    const auto& id = member(file, token, "id", Json::value_t::number_unsigned, "id of an added token");
    const auto text = content.get<std::string>();
    const auto part = fmt::format("added token {}", in_quotes(text));
    for (const char* flag : {"/special", "/normalized", "/lstrip", "/rstrip"})
      expect(file, part, token, flag, {true, false, nullptr});
    expect(file, part, token, "/single_word", {false, nullptr});
    vocabulary.add(text, id_in(file, text, id));
    const bool is_normalized = value_at(token, "/normalized") == true;
    if (is_normalized && normalizer.marks_early) {  // U+2581 is no white space
      for (const char* flag : {"/lstrip", "/rstrip"}) expect(file, part, token, flag, {false, nullptr});
    }
    std::string room;
    const auto [place, is_new] = places.emplace(id.get<int32_t>(), tokens.size());
    if (is_new) tokens.emplace_back();
    tokens[place->second] = {.text = is_normalized ? std::string(normalizer.first_form(text, room)) : text,
                             .id = id.get<int32_t>(),
                             .is_special = value_at(token, "/special") != false,
                             .is_normalized = is_normalized,
                             .takes_space_before = value_at(token, "/lstrip") == true,
                             .takes_space_behind = value_at(token, "/rstrip") == true};
  }
  sort_longest_first(tokens);
  return tokens;
}

/// Refuses an id of an added token other than the one that Hugging Face's library gives it, whatever the file
/// says: that of the vocabulary, or else the next behind as many as the vocabulary has tokens.
void check_added_ids(const std::string& file, const Json& root, const Json& vocab) {
  std::map<std::string, size_t> added;
  for (const auto& token : value_at(root, "/added_tokens")) {
    const auto text = token.at("content").get<std::string>();
    const auto known = vocab.find(text);
    const Json expected =
        known != vocab.end() ? *known : Json(added.emplace(text, vocab.size() + added.size()).first->second);
    if (token.at("id") == expected) continue;
    throw InputError(
        "{}: the id of the added token {} is {}, expected {}, which Hugging Face's library gives it", file,
        in_quotes(text), token.at("id").dump(), expected.dump());
  }
}

/// What post_processor puts before a text, of so many tokens.
std::vector<int32_t> read_prefix(const std::string& file, const Json& root, size_t tokens) {
  std::vector<int32_t> prefix;
  const auto add = [&](const std::string& name, const std::string& text, const Json& id) {
    prefix.push_back(id_in(file, text, id));
    if (static_cast<size_t>(prefix.back()) >= tokens)
      throw InputError("{}: {} has the id {}, expected 0 to {}", file, name, prefix.back(), tokens - 1);
  };
  for (const auto& [name, step] :
       parts_of(file, {"post_processor", value_at(root, "/post_processor")}, "processors")) {
    const Json type = value_at(step, "/type");
    if (type == "RobertaProcessing" || type == "BertProcessing") add(name, "cls", value_at(step, "/cls/1"));
    if (type != "TemplateProcessing") continue;
    for (const Json& item : value_at(step, "/single")) {
      const Json token = value_at(item, "/SpecialToken/id");
      if (!token.is_string()) break;
      const auto text = token.get<std::string>();
      const Json known = value_at(step, "/special_tokens");
      const Json ids = known.is_object() && known.contains(text) ? value_at(known.at(text), "/ids") : Json();
      if (!ids.is_array()) throw InputError("{}: {} has no special token {}", file, name, in_quotes(text));
      for (const Json& id : ids) add(name, text, id);
    }
  }
  return prefix;
}

/// Bytes that have no token are those of model.unk_token, where the file names one.
void take_unknown(const Vocabulary& vocabulary, const Json& model, std::array<int32_t, 256>& byte_tokens) {
  const std::string& file = vocabulary.file();
  const Json name = value_at(model, "/unk_token");
  if (name.is_null() || std::ranges::find(byte_tokens, -1) == byte_tokens.end()) return;
  const auto id = name.is_string() ? vocabulary.find_shown(name.get<std::string>()) : std::nullopt;
  if (!id)
    throw InputError("{}: model/unk_token is {}, expected a token of model.vocab", file,
                     shortened(name.dump()));
  expect(file, "model", model, "/fuse_unk", {false, nullptr});
  std::ranges::replace(byte_tokens, -1, *id);
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

}  // namespace

BpeModel parse_tokenizer_json(const NamedText& file) {
  const Json root = parse_json(file.text, file.name);
  if (!root.is_object()) throw InputError("{}: is a JSON {}, expected an object", file.name, root.type_name());
  const auto& model = member(file.name, root, "model", Json::value_t::object, "model");
  const bool of_characters = value_at(model, "/byte_fallback") == true;
  check_model(file.name, model, of_characters);
  BpeModel result;
  result.merges_by_rank = false;
  if (of_characters) {
    read_spaces(file.name, root, result);
  } else {
    result.patterns = read_pre_tokenizer(file.name, root);
    result.normalizer = read_normalizer(file.name, root);
  }
  result.whole_pieces = value_at(model, "/ignore_merges") == true;
  Vocabulary vocabulary(file.name, of_characters ? Writing::characters : Writing::alphabet);
  result.added_tokens = read_added_tokens(file.name, root, result.normalizer, vocabulary);
  add_vocabulary(member(file.name, model, "vocab", Json::value_t::object, "model.vocab"), vocabulary);
  check_added_ids(file.name, root, model.at("vocab"));
  if (of_characters) {
    vocabulary.check_has_bytes();
    vocabulary.check_has_space();
  }
  result.tokens = vocabulary.finish();
  result.prefix = read_prefix(file.name, root, result.tokens.size());
  result.byte_tokens = vocabulary.byte_tokens();
  take_unknown(vocabulary, model, result.byte_tokens);
  result.characters = vocabulary.characters();
  MergeReader merges(vocabulary);
  read_json_merges(file.name, member(file.name, model, "merges", Json::value_t::array, "model.merges"), merges);
  result.merges = merges.take();
  if (of_characters) cut_at_spaces(result);
  return result;
}

}  // namespace strait
