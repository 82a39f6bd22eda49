// Added tokens in texts, against a reference that tries every token at every place.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "fuzz/tokenizer_input.h"
#include "strait/tokenizer/bpe_encoder.h"
#include "strait/tokenizer/unicode.h"

namespace strait {
namespace {

/// A tokenizer of bytes, whose ids are the bytes, and of these tokens in their order.
Tokenizer with_added(const std::vector<AddedToken>& tokens) {
  BpeModel model = parse_tokenizer_files(fuzz::small_tokenizer({}));
  model.added_tokens = tokens;
  return Tokenizer(std::move(model));
}

/// An added token that is no special one.
AddedToken added(std::string text, int32_t id, bool before = false, bool behind = false) {
  return {.text = std::move(text),
          .id = id,
          .is_special = false,
          .takes_space_before = before,
          .takes_space_behind = behind};
}

/// Where the white space begins that ends a well-formed text.
size_t end_without_space(std::string_view text) {
  for (size_t place = 0; place < text.size(); ++place) {
    if (leading_space(text.substr(place)) == text.size() - place) return place;
  }
  return text.size();
}

std::vector<int32_t> reference_ids(const std::vector<AddedToken>& tokens, std::string_view text) {
  std::vector<int32_t> ids;
  const auto add_bytes = [&](std::string_view part) {
    for (const char c : part) ids.push_back(static_cast<unsigned char>(c));
  };
  size_t done = 0;
  for (size_t begin = 0; begin < text.size();) {
    const auto token = std::ranges::find_if(
        tokens, [&](const AddedToken& other) { return text.substr(begin).starts_with(other.text); });
    if (token == tokens.end()) {
      ++begin;
      continue;
    }
    const auto before = begin > done ? text.substr(done, begin - done) : "";
    add_bytes(token->takes_space_before ? before.substr(0, end_without_space(before)) : before);
    ids.push_back(token->id);
    begin += token->text.size();
    done = begin + (token->takes_space_behind ? leading_space(text.substr(begin)) : 0);
  }
  add_bytes(text.substr(done));
  return ids;
}

/// So many parts, of which many are white space and many begin alike.
std::string random_text(std::mt19937& random, size_t parts) {
  static const std::vector<std::string> kParts = {
      " ", " ",  "  ",  "   ", "\n", "\xe3\x80\x80", "\xc2\xa0", "\xc3\xa9",
      "a", "ab", "abc", "b",   "<",  "<a",           "<a>",      "\xe3\x81\x82"};
  std::string text;
  for (size_t i = 0; i < parts; ++i) text += kParts[random() % kParts.size()];
  return text;
}

TEST(AddedTokens, AreThoseOfTheReference) {
  std::mt19937 random(11);
  size_t found = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<AddedToken> tokens;
    for (size_t count = 1 + random() % 12; count > 0; --count) {
      tokens.push_back(added(random_text(random, 1 + random() % 3), static_cast<int32_t>(1000 + count),
                             random() % 3 == 0, random() % 3 == 0));
    }
    std::ranges::stable_sort(tokens, std::ranges::greater(),
                             [](const auto& token) { return token.text.size(); });
    const Tokenizer tokenizer = with_added(tokens);
    const std::string text = random_text(random, random() % 40);
    const auto ids = tokenizer.encode(text);
    ASSERT_EQ(ids, reference_ids(tokens, text)) << '"' << text << '"';
    found += static_cast<size_t>(std::ranges::count_if(ids, [](int32_t id) { return id >= 1000; }));
  }
  EXPECT_GT(found, 1000U);
}

TEST(AddedTokens, OfTheSameTextTheFirstIsTaken) {
  const Tokenizer tokenizer =
      with_added({added("<a>", 7000), added("<a>", 5000), added("<", 6000), added("<", 8000)});
  EXPECT_THAT(tokenizer.encode("<a><b"), testing::ElementsAre(7000, 6000, 'b'));
}

/// To try each of them at each place would take minutes.
TEST(AddedTokens, MayBeManyThatBeginAlike) {
  std::vector<AddedToken> tokens;
  for (int32_t i = 0; i < 50'000; ++i) tokens.push_back(added(fmt::format("<<<token_{:05}>", i), 1000 + i));
  const Tokenizer tokenizer = with_added(tokens);
  const auto ids = tokenizer.encode(std::string(1'000'000, '<') + "token_04321>");
  ASSERT_EQ(ids.size(), 1'000'000U - 3 + 1);
  EXPECT_EQ(ids.back(), 1000 + 4321);
}

/// To look for the end of the spaces from each of them would take an hour.
TEST(AddedTokens, OfWhiteSpaceMayFillATextWithWhiteSpaceAround) {
  constexpr size_t kSpaces = 1'000'000;
  for (const bool before : {false, true}) {
    for (const bool behind : {false, true}) {
      const Tokenizer tokenizer = with_added({added(" ", 1000, before, behind)});
      const auto ids = tokenizer.encode("\n" + std::string(kSpaces, ' ') + "\n\nx");
      const auto count = static_cast<size_t>(std::ranges::count(ids, 1000));
      EXPECT_EQ(count, kSpaces);
      // The line ends go with the first and with the last.
      EXPECT_EQ(ids.size(), kSpaces + (before ? 0 : 1) + (behind ? 0 : 2) + 1);
    }
  }
}

}  // namespace
}  // namespace strait
