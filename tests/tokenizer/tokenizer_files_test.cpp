#include "strait/tokenizer/tokenizer_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/tokenizer/tokenizer.h"
#include "strait/tokenizer/vocabulary.h"
#include "tests/support/errors.h"
#include "tests/support/nested.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

std::string complaint(const std::vector<NamedText>& files) {
  return test::message_of<InputError>([&] { parse_tokenizer_files(files); });
}

/// What is said of a vocabulary of the bytes and these entries.
std::string complaint_of_entries(const std::string& entries) {
  return complaint(
      {{"vocab.json", fmt::format("{{{}{}}}", fuzz::byte_entries(), entries)}, {"merges.txt", ""}});
}

/// What is said of these merges where "ab" and "abc" are tokens.
std::string complaint_of_merges(const std::string& merges) {
  const auto vocab = fmt::format(R"({{{}, "ab": 256, "abc": 257}})", fuzz::byte_entries());
  return complaint({{"vocab.json", vocab}, {"merges.txt", merges}});
}

/// Hugging Face's one file of the sample tokenizer, with merges in either form.
json sample_json(bool pairs) {
  const auto files = fuzz::small_tokenizer(fuzz::sample_merges());
  json merges = json::array();
  for (const auto& [left, right] : fuzz::sample_merges()) {
    const auto a = fuzz::shown(left);
    const auto b = fuzz::shown(right);
    merges.push_back(pairs ? json{a, b} : json(a + " " + b));
  }
  const auto vocab = json::parse(files[0].text);
  return {{"version", "1.0"},
          {"added_tokens", {{{"id", vocab["<|endoftext|>"]}, {"content", "<|endoftext|>"}, {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"dropout", nullptr}, {"vocab", vocab}, {"merges", merges}}}};
}

std::string complaint_of_json(const json& root) { return complaint({{"tokenizer.json", root.dump()}}); }

TEST(ByteAlphabet, IsThatOfGpt2) {
  EXPECT_EQ(bytes_of_alphabet("\xc4\xa0the"), " the");
  EXPECT_EQ(bytes_of_alphabet("\xc4\x8a"), "\n");
  EXPECT_EQ(bytes_of_alphabet("\xc3\x83\xc2\xa9"), "\xc3\xa9");
  for (const char* none : {" ", "\xc5\x84", "\xe2\x82\xac", "a\tb", "\xc2\xad"}) {
    EXPECT_FALSE(bytes_of_alphabet(none).has_value()) << none;
  }
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(bytes_of_alphabet(fuzz::shown(one)), one);
  }
}

TEST(TokenizerFiles, OneFileGivesTheSameAsTwo) {
  const Tokenizer two(parse_tokenizer_files(fuzz::small_tokenizer(fuzz::sample_merges())));
  for (const bool pairs : {false, true}) {
    const Tokenizer one(
        parse_tokenizer_files(std::vector<NamedText>{{"tokenizer.json", sample_json(pairs).dump()}}));
    for (const char* text : {"the other thing's 1900", "xyxyz \r\n", "<|endoftext|>"}) {
      EXPECT_EQ(one.encode(text), two.encode(text));
      EXPECT_EQ(one.encode(text, SpecialTokens::as_tokens), two.encode(text, SpecialTokens::as_tokens));
    }
  }
}

TEST(TokenizerFiles, AddedTokensAreTextAsItIs) {
  auto root = sample_json(true);
  const auto next = root["model"]["vocab"].size();
  root["added_tokens"].push_back({{"id", next}, {"content", "<a b>"}});
  const Tokenizer tokenizer(parse_tokenizer_files(std::vector<NamedText>{{"tokenizer.json", root.dump()}}));
  EXPECT_EQ(tokenizer.decode(std::vector<int64_t>{static_cast<int64_t>(next)}), "<a b>");
  root["added_tokens"].push_back({{"id", next + 1}, {"content", "<a b>"}});
  EXPECT_EQ(complaint_of_json(root),
            fmt::format("tokenizer.json: token \"<a b>\" has the ids {} and {}", next, next + 1));
}

TEST(TokenizerFiles, ThePrefixIsWhatStandsBeforeAText) {
  auto root = sample_json(true);
  const auto prefix = [&](const json& post_processor) {
    root["post_processor"] = post_processor;
    return parse_tokenizer_files(std::vector<NamedText>{{"tokenizer.json", root.dump()}}).prefix;
  };
  const json bytes = {{"type", "ByteLevel"}};
  const json text = {{"Sequence", {{"id", "A"}}}};
  const json token = {{"SpecialToken", {{"id", "<s>"}}}};
  const json known = {{"<s>", {{"id", "<s>"}, {"ids", {5, 6}}}}};
  EXPECT_EQ(prefix(nullptr), std::vector<int32_t>());
  EXPECT_EQ(prefix(bytes), std::vector<int32_t>());
  for (const char* type : {"RobertaProcessing", "BertProcessing"}) {
    EXPECT_EQ(prefix({{"type", type}, {"sep", {"</s>", 8}}, {"cls", {"<s>", 7}}}), std::vector<int32_t>({7}));
  }
  const json before = {
      {"type", "TemplateProcessing"}, {"single", {token, text, token}}, {"special_tokens", known}};
  EXPECT_EQ(prefix({{"type", "Sequence"}, {"processors", {bytes, before}}}), std::vector<int32_t>({5, 6}));
  const json behind = {{"type", "TemplateProcessing"}, {"single", {text, token}}, {"special_tokens", known}};
  EXPECT_EQ(prefix(behind), std::vector<int32_t>());
}

TEST(TokenizerFiles, TheFirstLineOfMergesMayBeAVersion) {
  const auto vocab = fmt::format(R"({{{}, "##": 256}})", fuzz::byte_entries());
  const auto merges_of = [&](const std::string& merges) {
    return parse_tokenizer_files(std::vector<NamedText>{{"vocab.json", vocab}, {"merges.txt", merges}})
        .merges.size();
  };
  EXPECT_EQ(merges_of("#version: 0.2\n# #\n"), 1U);
  EXPECT_EQ(merges_of("# #"), 1U);
  EXPECT_EQ(merges_of(""), 0U);
}

TEST(TokenizerFiles, TwoFilesAreATokenizerJson) {
  const auto files = fuzz::small_tokenizer(fuzz::sample_merges());
  const Tokenizer tokenizer(parse_tokenizer_files(files));
  const std::vector<NamedText> one = {{"tokenizer.json", to_tokenizer_json(files, tokenizer.added_tokens())}};
  const Tokenizer again(parse_tokenizer_files(one));
  const std::string text = "the other thing's xyz  \xe3\x81\x82<|endoftext|>\n\n\xff";
  for (const auto special : {SpecialTokens::as_text, SpecialTokens::as_tokens})
    EXPECT_EQ(again.encode(text, special), tokenizer.encode(text, special));
  EXPECT_EQ(again.vocab_size(), tokenizer.vocab_size());
  EXPECT_EQ(to_tokenizer_json(one, again.added_tokens()), one.front().text);
}

TEST(TokenizerFiles, WhatIsNotJsonIsNamedWithItsPlace) {
  EXPECT_EQ(complaint({{"vocab.json", "{\"a\": 0,\n\"b\" 1}"}, {"merges.txt", ""}}),
            "vocab.json: is not JSON (at byte 14)");
  EXPECT_THAT(complaint({{"vocab.json", ""}, {"merges.txt", ""}}), StartsWith("vocab.json: is not JSON"));
  EXPECT_EQ(complaint({{"vocab.json", "[1]"}, {"merges.txt", ""}}),
            "vocab.json: is a JSON array, expected an object of tokens and ids");
  EXPECT_EQ(complaint({{"vocab.json", "{\"a\": 1e999}"}, {"merges.txt", ""}}),
            "vocab.json: the number 1e999 is too large (at byte 11)");
  EXPECT_THAT(complaint({{"tokenizer.json", "\"\xff\""}}), StartsWith("tokenizer.json: is not JSON"));
}

TEST(TokenizerFiles, DeepNestingIsRefused) {
  const std::string deep = test::nested(300'000);
  EXPECT_EQ(complaint_of_entries(", \"ab\": " + deep), "vocab.json: is nested deeper than 100 levels");
  for (const std::string& text : {R"({"normalizer": )" + deep + "}", R"({"model": {"dropout": )" + deep + "}}",
                                  R"({"model": {"vocab": {"a": )" + deep + R"(}, "merges": []}})",
                                  R"({"model": {"merges": [)" + deep + "]}}"}) {
    EXPECT_EQ(complaint({{"tokenizer.json", text}}), "tokenizer.json: is nested deeper than 100 levels");
  }
}

TEST(TokenizerFiles, IdsMustBeThoseFromNoughtOn) {
  EXPECT_EQ(complaint_of_entries(R"(, "ab": 257)"),
            "vocab.json: no token has the id 256, expected one for each from 0 to 257");
  EXPECT_EQ(complaint_of_entries(R"(, "ab": 256, "ab": 257)"), "vocab.json: has the key \"ab\" twice");
  EXPECT_EQ(complaint_of_entries(R"(, "ab": 97)"), "vocab.json: tokens \"a\" and \"ab\" both have the id 97");
  for (const std::string id : {"-1", "1.5", "\"256\"", "null", "2147483648", "18446744073709551615"}) {
    EXPECT_EQ(complaint_of_entries(", \"ab\": " + id),
              "vocab.json: the id of token \"ab\" is " + id + ", expected an integer from 0 on");
  }
}

TEST(TokenizerFiles, TokensMustBeMadeOfBytes) {
  EXPECT_EQ(complaint_of_entries(R"(, "": 256)"), "vocab.json: a token is empty");
  EXPECT_EQ(complaint_of_entries(R"(, "a b": 256)"),
            "vocab.json: token \"a b\" has a character that stands for no byte");
  EXPECT_EQ(complaint({{"vocab.json", R"({"a": 0})"}, {"merges.txt", ""}}),
            "vocab.json: no token for the byte 0x00, expected one for each of the 256");
  EXPECT_EQ(complaint({{"vocab.json", "{}"}, {"merges.txt", ""}}),
            "vocab.json: no token for the byte 0x00, expected one for each of the 256");
}

TEST(TokenizerFiles, MergesMustBeOfTokens) {
  EXPECT_EQ(complaint_of_merges("#version: 0.2\na b\nab d\n"),
            "merges.txt:3: \"abd\" is no token of vocab.json");
  EXPECT_EQ(complaint_of_merges("a b\nbc d\n"), "merges.txt:2: \"bc\" is no token of vocab.json");
  EXPECT_EQ(complaint_of_merges("a b\na b\n"), "merges.txt:2: the merge of \"a\" and \"b\" is there already");
  for (const std::string line : {"a", "a b c", "a  b", ""}) {
    EXPECT_EQ(complaint_of_merges("a b\n" + line + "\nab c"),
              "merges.txt:2: expected two tokens with a space between them, found \"" + line + "\"");
  }
  EXPECT_EQ(complaint_of_merges(" b"), "merges.txt:1: \"\" is no token of vocab.json");
  EXPECT_EQ(complaint_of_merges("a b\r\n"), "merges.txt:1: \"b\\u000d\" is no token of vocab.json");
  EXPECT_EQ(complaint_of_merges("a b\n\xff"), "merges.txt: is not UTF-8 at offset 4");
}

TEST(TokenizerFiles, TokenizerJsonMustHaveItsParts) {
  auto root = sample_json(false);
  EXPECT_EQ(complaint_of_json(json::array()), "tokenizer.json: is a JSON array, expected an object");
  root["model"]["merges"][2] = 5;
  EXPECT_EQ(complaint_of_json(root), "tokenizer.json: merge 2: expected a text or a pair of texts, found 5");
  root["model"]["merges"] = json::object();
  EXPECT_EQ(complaint_of_json(root), "tokenizer.json: model.merges is a JSON object, expected a JSON array");
  root["model"].erase("vocab");
  EXPECT_EQ(complaint_of_json(root), "tokenizer.json: has no model.vocab");
  root["added_tokens"][0].erase("content");
  EXPECT_EQ(complaint_of_json(root), "tokenizer.json: has no content of an added token");
}

TEST(TokenizerFiles, WhatWouldGiveOtherTokensIsRefused) {
  const auto with = [](const char* path, const json& value) {
    auto root = sample_json(true);
    root[json::json_pointer(path)] = value;
    return complaint_of_json(root);
  };
  EXPECT_EQ(with("/pre_tokenizer/type", "Metaspace"),
            "tokenizer.json: pre_tokenizer/type is \"Metaspace\", expected \"ByteLevel\"");
  EXPECT_EQ(with("/pre_tokenizer", json()),
            "tokenizer.json: has no step in pre_tokenizer, expected ByteLevel at its end");
  EXPECT_THAT(with("/pre_tokenizer", json::object()),
              HasSubstr("pre_tokenizer/type is null, expected \"ByteLevel\""));
  for (const char* place : {"/pre_tokenizer", "/normalizer"}) {
    EXPECT_THAT(with(place, "NFC"), HasSubstr("is \"NFC\", expected an object"));
    EXPECT_THAT(with(place, {{"type", "Sequence"}}), HasSubstr("is not there, expected an array"));
  }
  EXPECT_THAT(with("/pre_tokenizer/add_prefix_space", true), HasSubstr("expected false"));
  EXPECT_EQ(with("/normalizer", {{"type", "NFKC"}}),
            "tokenizer.json: normalizer/type is \"NFKC\", expected \"NFC\"");
  EXPECT_THAT(with("/model/type", "Unigram"), HasSubstr("expected \"BPE\""));
  EXPECT_THAT(with("/model/dropout", 0.1), HasSubstr("model/dropout is 0.1, expected 0.0"));
  EXPECT_THAT(with("/model/end_of_word_suffix", "</w>"), HasSubstr("model/end_of_word_suffix"));
  EXPECT_THAT(with("/added_tokens/0/single_word", true),
              HasSubstr("added token \"<|endoftext|>\"/single_word is true, expected false"));
}

TEST(TokenizerFiles, OneFileIsPreferredToTwo) {
  const test::TempDir folder;
  const auto message = [&] { return test::message_of<InputError>([&] { load_tokenizer(folder.path()); }); };
  EXPECT_EQ(message(), folder.path().string() +
                           ": holds no tokenizer, expected tokenizer.json, or vocab.json and merges.txt");
  const auto files = fuzz::small_tokenizer(fuzz::sample_merges());
  std::filesystem::create_symlink("vocab.json", folder / "vocab.json");  // to itself
  EXPECT_THAT(message(), HasSubstr("vocab.json: cannot be read: Too many levels of symbolic links"));
  std::filesystem::remove(folder / "vocab.json");
  test::write_file(folder / "vocab.json", files[0].text);
  EXPECT_THAT(message(), HasSubstr("merges.txt: cannot be opened"));
  test::write_file(folder / "merges.txt", files[1].text);
  EXPECT_EQ(load_tokenizer(folder.path()).encode(" the").size(), 1U);
  test::write_file(folder / "tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  EXPECT_THAT(message(), HasSubstr("are of a \"Qwen2Tokenizer\", which may cut texts otherwise than GPT-2"));
  test::write_file(folder / "tokenizer_config.json", R"({"add_prefix_space": true})");
  EXPECT_THAT(message(), HasSubstr("add_prefix_space of tokenizer_config.json is true, expected false"));
  for (const char* beside : {R"({"added_tokens_decoder": {"900": {"content": "<x>"}}})",
                             R"({"additional_special_tokens": ["<|endoftext|>", "<x>"]})"}) {
    test::write_file(folder / "tokenizer_config.json", beside);
    EXPECT_THAT(message(),
                HasSubstr("token \"<x>\" is added to those of vocab.json; expected a tokenizer.json"));
  }
  test::write_file(folder / "tokenizer_config.json",
                   R"({"added_tokens_decoder": {"300": {"content": "<|endoftext|>"}}, "pad_token": null})");
  EXPECT_NO_THROW(load_tokenizer(folder.path()));
  test::write_file(folder / "added_tokens.json", R"({"<y>": 900})");
  EXPECT_THAT(message(), HasSubstr("token \"<y>\" is added to those of vocab.json"));
  auto root = sample_json(false);
  root["pre_tokenizer"]["use_regex"] = false;
  test::write_file(folder / "tokenizer.json", root.dump());
  EXPECT_EQ(load_tokenizer(folder.path()).patterns().size(), 0U);
}

TEST(TokenizerFiles, TheTokenThatEndsATextIsTheFolders) {
  const test::TempDir folder;
  EXPECT_EQ(end_of_text_of(folder.path()), "<|endoftext|>");
  for (const char* form :
       {R"({"eos_token": "</s>"})", R"({"eos_token": {"content": "</s>", "lstrip": false}})"}) {
    test::write_file(folder / "tokenizer_config.json", form);
    EXPECT_EQ(end_of_text_of(folder.path()), "</s>");
  }
  test::write_file(folder / "tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_EQ(end_of_text_of(folder.path()), "<|endoftext|>");
  test::write_file(folder / "tokenizer_config.json", "{");
  EXPECT_THROW(end_of_text_of(folder.path()), InputError);
}

}  // namespace
}  // namespace strait
