#include "strait/data/text_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/data/loader.h"
#include "strait/data/token_blocks.h"
#include "tests/support/errors.h"
#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

/// A root with the tokenizer of the 256 bytes, so that tokens are bytes, and texts in either form.
class TextData : public testing::Test {
 protected:
  TextData() {
    std::filesystem::create_directories(root_ / "gpt2");
    std::filesystem::create_directories(root_ / "wikitext-2-raw");
    for (const auto& file : fuzz::small_tokenizer({})) test::write_file(root_ / "gpt2" / file.name, file.text);
    test::write_file(train_, "abcd\nefgh\nij");
    test::write_file(test_, "0123456789");
    test::write_file(root_ / "wikitext-2-raw/wiki.train.raw", " \n = A = \n \n text\n \n = B = \n \n more\n");
    test::write_file(root_ / "wikitext-2-raw/wiki.valid.raw", " \n = Valid = \n");
    options_.root = root_.path();
  }

  void be_wikitext() {
    options_ = DataOptions("wikitext2", {{"block", 4}});
    options_.root = root_.path();
  }

  std::string complaint() const {
    return test::message_of<InputError>([&] { load_data(options_); });
  }

  test::TempDir root_;
  test::TempDir cache_;
  test::Variable variable_{"STRAIT_CACHE", cache_.path().c_str()};
  std::string train_ = root_ / "train.txt";
  std::string test_ = root_ / "test.txt";
  DataOptions options_{"text", {{"block", 4}, {"train_file", train_}, {"test_file", test_}}};
};

/// All samples as text, a sample a line.
std::string text_of(const Dataset& data) {
  std::string text;
  for (int64_t id = 0; id < data.size(); ++id) {
    const auto batch = data.batch(std::vector<int64_t>{id}, std::nullopt);
    for (int64_t i = 0; i < batch.inputs.numel(); ++i)
      text += static_cast<char>(batch.inputs.data_ptr<int64_t>()[i]);
    text += '|';
  }
  return text;
}

TEST(TokenBlocks, ABatchHasTheBlocksAsInputsAndTargets) {
  const TokenBlocks blocks({1, 2, 3, 4, 5, 6, 50256, 8}, 2);
  ASSERT_EQ(blocks.size(), 4);
  const auto batch = blocks.batch(std::vector<int64_t>{3, 0}, 17);
  EXPECT_THAT(batch.ids, ElementsAre(3, 0));
  EXPECT_EQ(batch.inputs.scalar_type(), at::kLong);
  EXPECT_THAT(batch.inputs.sizes(), ElementsAre(2, 2));
  EXPECT_TRUE(batch.targets.is_same(batch.inputs));
  EXPECT_THAT(std::vector(batch.inputs.data_ptr<int64_t>(), batch.inputs.data_ptr<int64_t>() + 4),
              ElementsAre(50256, 8, 1, 2));
  EXPECT_THROW(blocks.batch(std::vector<int64_t>{4}, std::nullopt), InternalError);
  EXPECT_THROW(TokenBlocks({1, 2, 3}, 2), InternalError);
}

TEST_F(TextData, TextIsCutIntoBlocksAsAWhole) {
  const auto data = load_data(options_);
  EXPECT_EQ(text_of(*data.train), "abcd|\nefg|h\nij|");
  EXPECT_EQ(text_of(*data.test), "0123|4567|");
  EXPECT_EQ(data.vocab, 257);
}

TEST_F(TextData, SpecialTokensAreTokensWhereTheKeySaysSo) {
  test::write_file(train_, "abc<|endoftext|>efgh");
  EXPECT_EQ(load_data(options_).train->size(), 5);
  options_.settings.set("special_tokens", true);
  EXPECT_EQ(load_data(options_).train->size(), 2);
}

TEST_F(TextData, WikitextIsReadLineByLine) {
  be_wikitext();
  const auto data = load_data(options_);
  EXPECT_EQ(text_of(*data.train), " = A| = \n| tex|t\n =| B =| \n m|ore\n|");
  EXPECT_EQ(text_of(*data.test), " = V|alid| = \n|");
}

TEST_F(TextData, TheRangeIsOfTheTrainingTextAlone) {
  options_.settings.set("train_range", std::vector<double>{0.4, 1.0});
  const auto data = load_data(options_);
  EXPECT_EQ(text_of(*data.train), "efgh|");
  EXPECT_EQ(text_of(*data.test), "0123|4567|");
  options_.settings.set("train_range", std::vector<double>{0.9, 1.0});
  EXPECT_EQ(complaint(),
            train_ + ": the range [0.9, 1] of the text has 0 tokens and not one block of data.block = 4");
}

TEST_F(TextData, LimitsCountBlocks) {
  options_.train_limit = 2;
  options_.test_limit = 1;
  const auto data = load_data(options_);
  EXPECT_EQ(text_of(*data.train), "abcd|\nefg|");
  EXPECT_EQ(text_of(*data.test), "0123|");
  options_.train_limit = 4;
  EXPECT_EQ(complaint(), "data.train_limit is 4, expected 0 (all) to 3");
}

TEST_F(TextData, TheTokenizerMayLieElsewhere) {
  std::filesystem::rename(root_ / "gpt2", root_ / "bytes");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("gpt2: no such folder"), HasSubstr("data.tokenizer")));
  options_.settings.set("tokenizer", (root_ / "bytes").string());
  options_.root = "";
  EXPECT_EQ(text_of(*load_data(options_).test), "0123|4567|");
  options_.settings.set("tokenizer", "");
  EXPECT_THAT(complaint(), HasSubstr("data.tokenizer is not set"));
}

TEST_F(TextData, MissingAndShortTextsAreNamed) {
  test::write_file(test_, "012");
  EXPECT_EQ(complaint(),
            test_ + ": the range [0, 1] of the text has 3 tokens and not one block of data.block = 4");
  options_.settings.set("test_file", (root_ / "none").string());
  EXPECT_THAT(complaint(), HasSubstr("none: cannot be opened"));
  options_.settings.set("test_file", "");
  EXPECT_EQ(complaint(), "data.test_file is not set, expected the name of a text file");
  be_wikitext();
  std::filesystem::remove(root_ / "wikitext-2-raw/wiki.valid.raw");
  std::filesystem::create_symlink("wiki.valid.raw", root_ / "wikitext-2-raw/wiki.valid.raw");
  EXPECT_THAT(complaint(), HasSubstr("wiki.valid.raw: cannot be read: Too many levels of symbolic links"));
  std::filesystem::remove(root_ / "wikitext-2-raw/wiki.valid.raw");
  EXPECT_THAT(complaint(), AllOf(HasSubstr("wiki.valid.raw: no such file"), HasSubstr("STRAIT_DATA")));
  options_.root = "";
  EXPECT_THAT(complaint(), HasSubstr("data.root is not set"));
}

TEST_F(TextData, TheCacheGivesTheSameAndIsUsed) {
  const auto first = text_of(*load_data(options_).train);
  const auto files = test::names_in(cache_.path());
  ASSERT_EQ(files.size(), 2U);
  // What is in the cache takes the place of encoding: a file under the key of another text shows it.
  const auto sizes = [&](size_t i) { return std::filesystem::file_size(cache_ / files[i]); };
  const size_t train = sizes(0) > sizes(1) ? 0 : 1;
  std::filesystem::copy_file(cache_ / files[1 - train], cache_ / files[train],
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(text_of(*load_data(options_).train), "0123|4567|");
  // Damaged, it is made again.
  test::write_file(cache_ / files[train], "damaged");
  EXPECT_EQ(text_of(*load_data(options_).train), first);
  EXPECT_NE(test::read_file(cache_ / files[train]), "damaged");
  const test::Variable off("STRAIT_CACHE", "/proc/none");
  EXPECT_EQ(text_of(*load_data(options_).train), first);
}

TEST_F(TextData, TheLoaderMakesItsBatches) {
  const auto data = load_data(options_).train;
  Loader loader(data, {.order = epoch_order(3, 0, data->size()), .batch_size = 2, .augmentation_key = 5});
  const auto first = loader.next();
  const auto second = loader.next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->inputs.size(0) + second->inputs.size(0), 3);
  EXPECT_EQ(second->inputs.size(1), 4);
  EXPECT_FALSE(loader.next());
}

}  // namespace
}  // namespace strait
