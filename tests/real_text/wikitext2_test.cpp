// The official files that STRAIT_DATA names: wikitext-2-raw/ and gpt2/.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "strait/base/text.h"
#include "strait/data/dataset.h"
#include "strait/data/text_source.h"
#include "strait/tokenizer/bpe_encoder.h"
#include "tests/support/variable.h"
#include "tests/tokenizer/bpe_reference.h"

namespace strait {
namespace {

using testing::ElementsAre;

std::filesystem::path data_root() {
  const char* root = std::getenv("STRAIT_DATA");
  if (root == nullptr) throw std::runtime_error("STRAIT_DATA is not set");
  return root;
}

const Tokenizer& gpt2() {
  static const Tokenizer kTokenizer = load_tokenizer(data_root() / "gpt2");
  return kTokenizer;
}

std::string wiki(const std::string& part) {
  return test::read_file(data_root() / "wikitext-2-raw" / ("wiki." + part + ".raw"));
}

TEST(Gpt2, KnownTexts) {
  EXPECT_EQ(gpt2().vocab_size(), 50257);
  EXPECT_THAT(gpt2().encode("Hello world"), ElementsAre(15496, 995));
  EXPECT_THAT(gpt2().encode("<|endoftext|>", SpecialTokens::as_tokens), ElementsAre(50256));
  EXPECT_GT(gpt2().encode("<|endoftext|>").size(), 1U);
  ASSERT_EQ(gpt2().added_tokens().size(), 1U);
}

TEST(Gpt2, HostileTextGivesTheIdsOfTheReference) {
  test::expect_ids_of_reference(data_root() / "gpt2", test::hostile_texts());
}

TEST(Gpt2, RealTextGivesTheIdsOfTheReference) {
  const auto lines = split(wiki("test"), '\n');
  std::vector<std::string> texts;
  for (size_t i = 0; i < lines.size(); i += 9) texts.push_back(lines[i] + "\n");
  ASSERT_GT(texts.size(), 400U);
  test::expect_ids_of_reference(data_root() / "gpt2", texts);
}

TEST(Gpt2, WholeFilesComeBack) {
  for (const char* part : {"valid", "test"}) {
    const auto text = wiki(part);
    EXPECT_TRUE(gpt2().decode(gpt2().encode(text)) == text) << part;
  }
}

TEST(Wikitext2, HasThePublishedNumberOfTokens) {
  const auto count = [](const char* part) {
    return encode_text(gpt2(), wiki(part), TextForm::wikitext).tokens.size();
  };
  EXPECT_EQ(count("train"), 2'391'884U);
  EXPECT_EQ(count("valid"), 247'289U);
  EXPECT_EQ(count("test"), 283'287U);
}

TEST(Wikitext2, HasThePublishedNumberOfBlocks) {
  const test::TempDir cache;
  const test::Variable variable("STRAIT_CACHE", cache.path().c_str());
  DataOptions options("wikitext2");
  options.root = data_root();
  for (const bool cached : {false, true}) {
    const auto data = load_data(options);
    EXPECT_EQ(data.train->size(), 2318) << cached;
    EXPECT_EQ(data.test->size(), 240) << cached;
    EXPECT_EQ(data.vocab, 50257);
    const auto batch = data.train->batch(std::vector<int64_t>{0}, std::nullopt);
    const auto* ids = batch.inputs.data_ptr<int64_t>();
    EXPECT_EQ(gpt2().decode(std::span(ids, 11)), " = Valkyria Chronicles III = \n Senj");
  }
}

TEST(Wikitext2, RangesAreWholeArticles) {
  const auto text = wiki("train");
  std::string all;
  for (int i = 0; i < 20; ++i) {
    const auto part = range_of_text(text, i / 20.0, (i + 1) / 20.0, TextForm::wikitext);
    EXPECT_TRUE(i == 0 || part.empty() || (part.starts_with(" = ") && !part.starts_with(" = = "))) << i;
    all += part;
  }
  EXPECT_TRUE(all == text);
  const auto half = range_of_text(text, 0, 0.5, TextForm::wikitext);
  EXPECT_NEAR(static_cast<double>(half.size()) / static_cast<double>(text.size()), 0.5, 0.01);
}

/// Ranges as fine as the bytes find each article alone.
TEST(Wikitext2, HasTheNumberOfArticlesOfItsPaper) {
  for (const char* part : {"valid", "test"}) {
    const auto text = wiki(part);
    int found = 0;
    for (size_t start = 0; start < text.size(); ++found) {
      const auto rest = range_of_text(text, static_cast<double>(start + 1) / static_cast<double>(text.size()),
                                      1, TextForm::wikitext);
      start = text.size() - rest.size();
    }
    EXPECT_EQ(found, 60) << part;
  }
}

}  // namespace
}  // namespace strait
