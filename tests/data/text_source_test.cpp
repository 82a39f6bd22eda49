#include "strait/data/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fuzz/tokenizer_input.h"

namespace strait {
namespace {

using testing::ElementsAre;

const Tokenizer& tokenizer() {
  static const Tokenizer kTokenizer(parse_tokenizer_files(fuzz::small_tokenizer({{"a", "b"}})));
  return kTokenizer;
}

/// An article of about 100 bytes, whose text looks like a title and a section in passing.
std::string article(const std::string& name) {
  return " \n = " + name + " = \n \n text of " + name +
         "\n = not a title = \n \n = = Section = = \n \n more text \n";
}

TEST(RangeOfText, CutsAtArticles) {
  const std::string one = article("One");
  const std::string two = article("Two and three");
  const std::string four = article("4");
  const std::string text = one + two + four;
  // The blank line before a title is the last of the article before.
  const std::string first = one + " \n";
  const auto range = [&](double begin, double end) {
    return range_of_text(text, begin, end, TextForm::wikitext);
  };
  EXPECT_EQ(range(0, 1), text);
  EXPECT_EQ(range(0, 0.1), first);
  EXPECT_EQ(range(0.1, 0.5), two.substr(2) + " \n");
  EXPECT_EQ(range(0.5, 1), four.substr(2));
  EXPECT_EQ(range(0.9, 1), "");
  EXPECT_EQ(range(0.01, 0.02), "");
}

TEST(RangeOfText, RangesShareNothingAndLeaveNothingOut) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += article(std::string(static_cast<size_t>(i * 7 % 11), 'x') + "y");
  for (const auto form : {TextForm::wikitext, TextForm::plain}) {
    for (const int parts : {1, 2, 3, 7, 64, 1000}) {
      std::string all;
      for (int i = 0; i < parts; ++i) {
        all += range_of_text(text, static_cast<double>(i) / parts, static_cast<double>(i + 1) / parts, form);
      }
      EXPECT_EQ(all, text) << parts;
    }
  }
}

TEST(RangeOfText, CutsPlainTextAtLines) {
  const std::string text = "1234\n\n78\nabcdef";  // lines from 0, 5, 6 and 9 of 15
  EXPECT_EQ(range_of_text(text, 0, 0.5, TextForm::plain), "1234\n\n78\n");
  EXPECT_EQ(range_of_text(text, 0.5, 1, TextForm::plain), "abcdef");
  EXPECT_EQ(range_of_text(text, 0.4, 0.6, TextForm::plain), "78\n");
  EXPECT_EQ(range_of_text("", 0, 1, TextForm::plain), "");
}

TEST(EncodeText, WikitextIsEncodedLineByLine) {
  const auto encoded = encode_text(tokenizer(), " \nab\n \n ab", TextForm::wikitext);
  EXPECT_THAT(encoded.tokens, ElementsAre(256, '\n', ' ', 256));
  EXPECT_THAT(encoded.group_ends, ElementsAre(4));
  EXPECT_THAT(encode_text(tokenizer(), "", TextForm::wikitext).group_ends, ElementsAre());
}

TEST(EncodeText, AThousandLinesAreAGroup) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += i % 2 == 0 ? "ab\n" : " \n";
  EXPECT_THAT(encode_text(tokenizer(), text, TextForm::wikitext).group_ends, ElementsAre(1000));
  EXPECT_THAT(encode_text(tokenizer(), text + "ab", TextForm::wikitext).group_ends, ElementsAre(1000, 1001));
}

TEST(EncodeText, PlainTextIsEncodedAsAWhole) {
  const auto encoded = encode_text(tokenizer(), "ab\n\nab", TextForm::plain);
  EXPECT_THAT(encoded.tokens, ElementsAre(256, '\n', '\n', 256));
  EXPECT_THAT(encoded.group_ends, ElementsAre(4));
}

TEST(EncodeText, SpecialTokensAreTokensInMarkedTextAlone) {
  const std::string text = "ab<|endoftext|>ab";
  EXPECT_THAT(encode_text(tokenizer(), text, TextForm::marked).tokens, ElementsAre(256, 257, 256));
  EXPECT_EQ(encode_text(tokenizer(), text, TextForm::plain).tokens.size(), text.size() - 2);
}

TEST(CutIntoBlocks, DropsTheRestOfEachGroup) {
  const EncodedText text{{1, 2, 3, 4, 5, 6, 7, 8}, {3, 3, 8}};
  EXPECT_THAT(cut_into_blocks(text, 2), ElementsAre(1, 2, 4, 5, 6, 7));
  EXPECT_THAT(cut_into_blocks(text, 5), ElementsAre(4, 5, 6, 7, 8));
  EXPECT_THAT(cut_into_blocks(text, 6), ElementsAre());
}

}  // namespace
}  // namespace strait
