#include "strait/tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strait/base/error.h"

namespace strait {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> pieces_of(std::string_view text,
                                   const std::vector<PiecePattern>& patterns = {PiecePattern::of_gpt2()}) {
  PreTokenizer pieces(text, patterns);
  std::vector<std::string> all;
  while (const auto piece = pieces.next()) all.emplace_back(*piece);
  return all;
}

TEST(PreTokenizer, WordsHaveTheSpaceBeforeThem) {
  EXPECT_THAT(pieces_of(""), IsEmpty());
  EXPECT_THAT(pieces_of("Hello world, 42 times!"), ElementsAre("Hello", " world", ",", " 42", " times", "!"));
  EXPECT_THAT(pieces_of("abc123"), ElementsAre("abc", "123"));
}

TEST(PreTokenizer, ContractionsAreInLowerCaseOnly) {
  EXPECT_THAT(pieces_of("it's I'VE we'll"), ElementsAre("it", "'s", " I", "'", "VE", " we", "'ll"));
  EXPECT_THAT(pieces_of("'re'd'm't'x"), ElementsAre("'re", "'d", "'m", "'t", "'", "x"));
}

TEST(PreTokenizer, TheLastOfManySpacesBelongsToTheWord) {
  EXPECT_THAT(pieces_of("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(pieces_of("a \n b\n"), ElementsAre("a", " \n", " b", "\n"));
  EXPECT_THAT(pieces_of("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(pieces_of("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
}

TEST(PreTokenizer, KnowUnicodesClasses) {
  EXPECT_THAT(pieces_of("\xd7\xa9\xd7\x9c \xd9\xa3\xd9\xa4"),
              ElementsAre("\xd7\xa9\xd7\x9c", " \xd9\xa3\xd9\xa4"));
  EXPECT_THAT(pieces_of("e\xcc\x81t"), ElementsAre("e", "\xcc\x81", "t"));  // a combining mark is no letter
  EXPECT_THAT(pieces_of("a\xe2\x80\x83 b"), ElementsAre("a", "\xe2\x80\x83", " b"));  // U+2003 is white space
  EXPECT_THAT(pieces_of("a\xe1\xa0\x8e!"), ElementsAre("a", "\xe1\xa0\x8e!"));        // U+180E is not
}

TEST(PreTokenizer, AMalformedByteIsAPieceAndEndsTheTextBeforeIt) {
  EXPECT_THAT(pieces_of("ab\xff\xfe"), ElementsAre("ab", "\xff", "\xfe"));
  EXPECT_THAT(pieces_of("a  \xff b"), ElementsAre("a", "  ", "\xff", " b"));
  EXPECT_THAT(pieces_of("\xe2\x82"), ElementsAre("\xe2", "\x82"));              // cut off
  EXPECT_THAT(pieces_of("\xc0\x80x"), ElementsAre("\xc0", "\x80", "x"));        // overlong
  EXPECT_THAT(pieces_of("\xed\xa0\x80"), ElementsAre("\xed", "\xa0", "\x80"));  // a surrogate
  EXPECT_THAT(pieces_of("\xf4\x90\x80\x80"), ElementsAre("\xf4", "\x90", "\x80", "\x80"));
  EXPECT_THAT(pieces_of("\xef\xbf\xbd"), ElementsAre("\xef\xbf\xbd"));  // U+FFFD itself is a character
}

TEST(PreTokenizer, EachPatternCutsThePiecesOfTheOneBefore) {
  const auto digit = PiecePattern::of_oniguruma("\\d");
  EXPECT_THAT(pieces_of("ab12 c", {digit}), ElementsAre("ab", "1", "2", " c"));
  EXPECT_THAT(pieces_of("a  12", {digit, PiecePattern::of_gpt2()}), ElementsAre("a", "  ", "1", "2"));
  EXPECT_THAT(pieces_of("a  12", {PiecePattern::of_gpt2(), digit}), ElementsAre("a", " ", " ", "1", "2"));
  EXPECT_THAT(pieces_of("a.b", {PiecePattern::of_text(".")}), ElementsAre("a", ".", "b"));
  EXPECT_THAT(pieces_of("a\xff b", {}), ElementsAre("a", "\xff", " b"));
}

TEST(PreTokenizer, ATextOfItsOwnIsAllThatAPatternSees) {
  const auto behind_digit = PiecePattern::of_oniguruma("(?<=1)b");
  EXPECT_THAT(pieces_of("1bb", {behind_digit}), ElementsAre("1", "b", "b"));
  EXPECT_THAT(pieces_of("1bb", {PiecePattern::of_text("1"), behind_digit}), ElementsAre("1", "bb"));
}

TEST(PreTokenizer, APatternThatTakesTooLongSaysSo) {
  const auto slow = PiecePattern::of_oniguruma("(?:a+a+)+(?=b)");
  EXPECT_THROW(pieces_of(std::string(200, 'a'), {slow}), InputError);
}

}  // namespace
}  // namespace strait
