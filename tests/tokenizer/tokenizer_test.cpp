#include "strait/tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>
#include <vector>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/tokenizer/bpe_encoder.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using testing::ElementsAre;

Tokenizer make_tokenizer(const fuzz::Merges& merges) {
  return Tokenizer(parse_tokenizer_files(fuzz::small_tokenizer(merges)));
}

const Tokenizer& sample() {
  static const Tokenizer kTokenizer = make_tokenizer(fuzz::sample_merges());
  return kTokenizer;
}

bool comes_back(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.decode(tokenizer.encode(text)) == text;
}

TEST(Tokenizer, MergesByRank) {
  const auto tokenizer = make_tokenizer({{"l", "o"}, {"lo", "w"}, {"e", "r"}});
  EXPECT_THAT(tokenizer.encode("lower"), ElementsAre(257, 258));
  EXPECT_THAT(tokenizer.encode("low lo"), ElementsAre(257, ' ', 256));
  EXPECT_THAT(tokenizer.encode(""), ElementsAre());
  EXPECT_EQ(tokenizer.vocab_size(), 256 + 3 + 1);
}

TEST(Tokenizer, APairIsMergedFromLeftToRight) {
  const auto tokenizer = make_tokenizer({{"a", "a"}, {"aa", "aa"}});
  EXPECT_THAT(tokenizer.encode("aaa"), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer.encode("aaaaaaa"), ElementsAre(257, 256, 'a'));
}

/// xyz ranks before xy, from which it is made: all of xy are made first all the same.
TEST(Tokenizer, AllPairsOfARankAreMergedBeforeTheNext) {
  const auto tokenizer = make_tokenizer({{"xy", "z"}, {"xy", "x"}, {"x", "y"}});
  EXPECT_THAT(tokenizer.encode("xyz"), ElementsAre(256));
  EXPECT_THAT(tokenizer.encode("xyxy"), ElementsAre(258, 258));  // never xyx and y
}

TEST(Tokenizer, NothingIsMergedAcrossPieces) {
  const auto tokenizer = make_tokenizer({{"a", "1"}, {" ", "a"}, {"a", " "}});
  EXPECT_THAT(tokenizer.encode("a1"), ElementsAre('a', '1'));
  EXPECT_THAT(tokenizer.encode("a a"), ElementsAre('a', 257));
}

TEST(Tokenizer, SpecialTokensAreTextUnlessAskedFor) {
  const int32_t end = sample().vocab_size() - 1;
  const std::string text = "a<|endoftext|>b<|endoftext|><|end";
  const auto as_text = sample().encode(text);
  EXPECT_EQ(std::ranges::count(as_text, end), 0);
  EXPECT_THAT(sample().encode(text, SpecialTokens::as_tokens),
              ElementsAre('a', end, 'b', end, '<', '|', 'e', 'n', 'd'));
  EXPECT_EQ(sample().decode(as_text), text);
  ASSERT_EQ(sample().added_tokens().size(), 1U);
  EXPECT_EQ(sample().added_tokens()[0].id, end);
}

TEST(Tokenizer, TheLongerOfTwoSpecialTokensIsTaken) {
  auto files = fuzz::small_tokenizer({});
  files[0].text.replace(files[0].text.rfind('}'), 1, R"(, "<|endoftext|>+": 257})");
  const Tokenizer tokenizer(parse_tokenizer_files(files));
  EXPECT_THAT(tokenizer.encode("<|endoftext|>+<|endoftext|>-", SpecialTokens::as_tokens),
              ElementsAre(257, 256, '-'));
}

TEST(Tokenizer, EveryByteAndEveryPairOfBytesComesBack) {
  for (int first = 0; first < 256; ++first) {
    const std::string one(1, static_cast<char>(first));
    ASSERT_THAT(sample().encode(one), ElementsAre(first));
    ASSERT_TRUE(comes_back(sample(), one));
    for (int second = 0; second < 256; ++second)
      ASSERT_TRUE(comes_back(sample(), one + static_cast<char>(second)));
  }
}

RC_GTEST_PROP(TokenizerProperty, EveryByteStringComesBack, (const std::string& text)) {
  RC_ASSERT(comes_back(sample(), text));
}

RC_GTEST_PROP(TokenizerProperty, MixturesOfHostileTextComeBack, ()) {
  const auto parts = *rc::gen::container<std::vector<std::string>>(
      rc::gen::element<std::string>(" the", "'s", "'LL", "  ", "\r\n", "\xff", "\xe2\x80", "\xe2\x80\x8d",
                                    "\xf0\x9f\x91\xa9", "\xed\xa0\x80", "\xc0\x80", "e\xcc\x81", "\xd7\xa9",
                                    "aaaa", "19", "\xe3\x80\x80", std::string(1, '\0'), "<|endoftext|>"));
  std::string text;
  for (const auto& part : parts) text += part;
  RC_ASSERT(comes_back(sample(), text));
  RC_ASSERT(sample().decode(sample().encode(text, SpecialTokens::as_tokens)) == text);
}

TEST(Tokenizer, LongPiecesComeBack) {
  const std::string word(100'000, 'a');
  EXPECT_EQ(sample().encode(word).size(), word.size() / 4);
  EXPECT_TRUE(comes_back(sample(), word));
  EXPECT_TRUE(comes_back(sample(), std::string(1'000'000, ' ') + "x"));
  std::string mixed;
  for (int64_t i = 0; i < 100'000; ++i) mixed += static_cast<char>('a' + i * i % 26);
  EXPECT_TRUE(comes_back(sample(), mixed));
}

TEST(BpeEncoder, RemembersWithoutAChange) {
  BpeEncoder encoder(sample());
  const std::string word(70, 'a');
  for (const std::string& text :
       {std::string(" the other 's"), std::string("ing the"), std::string(" the other 's"), word, word}) {
    std::vector<int32_t> ids = {7};
    encoder.append(text, ids);
    const auto alone = sample().encode(text);
    EXPECT_EQ(ids.front(), 7);
    EXPECT_EQ(std::vector(ids.begin() + 1, ids.end()), alone) << text;
  }
}

TEST(Tokenizer, RefusesIdsThatAreNone) {
  const auto message = [](std::vector<int64_t> ids) {
    return test::message_of<InputError>([&] { sample().decode(ids); });
  };
  const auto last = sample().vocab_size() - 1;
  EXPECT_EQ(message({1, -1}), fmt::format("token 1 has the id -1, expected 0 to {}", last));
  EXPECT_EQ(message({last + 1}), fmt::format("token 0 has the id {}, expected 0 to {}", last + 1, last));
  EXPECT_EQ(message({int64_t{1} << 40}),
            fmt::format("token 0 has the id 1099511627776, expected 0 to {}", last));
}

}  // namespace
}  // namespace strait
