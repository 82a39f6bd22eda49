#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "fuzz/tokenizer_input.h"
#include "tests/support/nested.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class Tokenize : public testing::Test {
 protected:
  Tokenize() {
    for (const auto& file : fuzz::small_tokenizer(fuzz::sample_merges())) {
      test::write_file(dir_ / file.name, file.text);
    }
    test::write_file(file_, text_);
  }

  test::ProcessResult run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"tokenize", "--tokenizer", dir_.path()});
    return test::run_process(STRAIT_PROGRAM, arguments);
  }

  /// The program at the end of a pipe that gives it the file.
  test::ProcessResult run_on_pipe(const std::string& arguments) const {
    return test::run_process("/bin/bash",
                             {"-c", "cat " + file_ + " | " + STRAIT_PROGRAM + " tokenize --tokenizer " +
                                        dir_.path().string() + " - " + arguments});
  }

  test::TempDir dir_;
  std::string file_ = dir_ / "text";
  std::string text_ = std::string("in the \xc3\xa9\0\xff<|endoftext|>\n\n", 26);
};

TEST_F(Tokenize, JsonHasTheIdsAndTheyDecode) {
  const auto result = run({file_, "--json"});
  EXPECT_EQ(result.status, 0) << result.err;
  const auto printed = json::parse(result.out);
  EXPECT_EQ(printed["tokens"], printed["ids"].size());
  EXPECT_EQ(printed["ids"][0], 259);  // "in"
  EXPECT_EQ(run_on_pipe("--json").out, result.out);

  test::write_file(dir_ / "ids", result.out);
  EXPECT_EQ(run({dir_ / "ids", "--decode"}).out, text_);
  test::write_file(dir_ / "ids", printed["ids"].dump());
  EXPECT_EQ(run({dir_ / "ids", "--decode"}).out, text_);
  test::write_file(dir_ / "ids", " 259\n32\t258 \n");
  EXPECT_EQ(run({dir_ / "ids", "--decode"}).out, "in  the");
}

TEST_F(Tokenize, TextSaysHowMuch) {
  test::write_file(file_, "in the \xc3\xa9");  // "in", " the", " ", "é"
  EXPECT_EQ(run({file_}).out, "4 tokens, 9 bytes, 8 characters; 2.250 bytes and 2.000 characters per token\n");
  test::write_file(file_, "");
  EXPECT_EQ(run({file_}).out, "0 tokens, 0 bytes, 0 characters\n");
  EXPECT_EQ(run({file_, "--json"}).out, "{\"tokens\":0,\"ids\":[]}\n");
}

TEST_F(Tokenize, SpecialTokensOnlyOnDemand) {
  test::write_file(file_, "<|endoftext|>");
  EXPECT_EQ(json::parse(run({file_, "--json", "--special"}).out)["tokens"], 1);
  EXPECT_GT(json::parse(run({file_, "--json"}).out)["tokens"], 5);
}

TEST_F(Tokenize, WrongInputIsNamed) {
  const auto expect_error = [](const test::ProcessResult& result, const std::string& message) {
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.err, testing::StartsWith("strait: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1);
  };
  expect_error(run({dir_ / "none"}), "none: cannot be opened");
  expect_error(run({dir_.path()}), "expected a file, found a folder");
  expect_error(run({}), "needs FILE");
  expect_error(run({file_, "--jsn"}), "--json");
  expect_error(test::run_process(STRAIT_PROGRAM, {"tokenize", file_}), "--tokenizer");
  expect_error(test::run_process(STRAIT_PROGRAM, {"tokenize", "--tokenizer", dir_ / "none", file_}),
               "holds no tokenizer");
  for (const auto& [ids, message] : {std::pair{"1 x", "token 1 must be an integer"},
                                     {"[1, 99999]", "text: token 1 has the id 99999"},
                                     {"[1, \"2\"]", "expected a JSON array of token ids"},
                                     {"{\"ids\": 3}", "expected a JSON array of token ids"},
                                     {"[1", "is not JSON (at byte 3)"},
                                     {"[1e999]", "the number 1e999 is too large"},
                                     {"[18446744073709551615]", "expected a JSON array"}}) {
    test::write_file(file_, ids);
    expect_error(run({file_, "--decode"}), message);
  }
  for (const std::string& deep : {test::nested(300'000), "{\"ids\": " + test::nested(300'000) + "}"}) {
    test::write_file(file_, deep);
    expect_error(run({file_, "--decode"}), "text: is nested deeper than 100 levels");
  }
  test::write_file(dir_ / "vocab.json", "{");
  expect_error(run({file_}), "vocab.json: is not JSON (at byte 2)");
  test::write_file(dir_ / "vocab.json", "{\"a\": " + test::nested(300'000) + "}");
  expect_error(run({file_}), "vocab.json: is nested deeper than 100 levels");
}

}  // namespace
}  // namespace strait
