#include "strait/data/token_cache.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <thread>

#include "tests/support/run_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

const EncodedText kText{{5, 6, 50256, 0}, {2, 4}};
const std::string kKey = "0123abcd";
constexpr int64_t kVocab = 50257;

TEST(TokenCache, GivesWhatWasStored) {
  const test::TempDir dir;
  const TokenCache cache(dir / "a/b");
  EXPECT_EQ(cache.find(kKey, kVocab), std::nullopt);
  cache.store(kKey, kText);
  EXPECT_EQ(cache.find(kKey, kVocab), kText);
  EXPECT_EQ(cache.find("other", kVocab), std::nullopt);
  cache.store("empty", {});
  EXPECT_EQ(cache.find("empty", kVocab), EncodedText{});
  EXPECT_EQ(test::names_in(dir / "a/b").size(), 2U);  // and no partial file
}

TEST(TokenCache, ADamagedFileIsNone) {
  const test::TempDir dir;
  const TokenCache cache(dir.path());
  cache.store(kKey, kText);
  const auto good = test::read_file(cache.file_of(kKey));
  for (size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x40);
    test::write_file(cache.file_of(kKey), bad);
    ASSERT_EQ(cache.find(kKey, kVocab), std::nullopt) << i;
    test::write_file(cache.file_of(kKey), good.substr(0, i));
    ASSERT_EQ(cache.find(kKey, kVocab), std::nullopt) << i;
  }
  test::write_file(cache.file_of(kKey), good + "x");
  EXPECT_EQ(cache.find(kKey, kVocab), std::nullopt);
  cache.store(kKey, kText);
  EXPECT_EQ(cache.find(kKey, kVocab), kText);
}

/// Whoever makes a file makes its checksum too.
TEST(TokenCache, AFileWhoseSumFitsMayBeWrongToo) {
  const test::TempDir dir;
  const TokenCache cache(dir.path());
  const auto found = [&](const EncodedText& text, int64_t vocab = kVocab) {
    cache.store(kKey, text);
    return cache.find(kKey, vocab);
  };
  for (const EncodedText& good :
       {kText, EncodedText{}, EncodedText{{}, {0}}, EncodedText{{1, 2}, {0, 0, 2, 2}}})
    EXPECT_EQ(found(good), good);
  EXPECT_EQ(found(kText, 50256), std::nullopt) << "of another vocabulary";
  const std::vector<std::vector<uint64_t>> ends = {
      {}, {2}, {2, 3}, {2, 5}, {4, 2}, {5, 4}, {2, 1, 4}, {uint64_t{1} << 60, 4}, {~uint64_t{0}}};
  for (const auto& bad : ends) EXPECT_EQ(found({kText.tokens, bad}), std::nullopt) << fmt::format("{}", bad);
  EXPECT_EQ(found({{}, {1}}), std::nullopt);
  for (const int32_t bad :
       {-1, 50257, std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()})
    EXPECT_EQ(found({{5, bad, 6}, {3}}), std::nullopt) << bad;
}

TEST(TokenCache, AFolderThatCannotBeWrittenIsNone) {
  const test::TempDir dir;
  test::write_file(dir / "file", "");
  for (const auto& folder :
       {dir / "file/below", std::filesystem::path("/proc/none"), std::filesystem::path()}) {
    const TokenCache cache(folder);
    cache.store(kKey, kText);
    EXPECT_EQ(cache.find(kKey, kVocab), std::nullopt);
  }
  // Something else has the name.
  const TokenCache cache(dir.path());
  std::filesystem::create_directories(cache.file_of(kKey) / "full");
  cache.store(kKey, kText);
  EXPECT_EQ(cache.find(kKey, kVocab), std::nullopt);
  EXPECT_EQ(test::names_in(dir.path()).size(), 2U);
}

TEST(TokenCache, SeveralMayStoreTheSameAtATime) {
  const test::TempDir dir;
  const TokenCache cache(dir.path());
  cache.store(kKey, kText);
  std::vector<std::thread> writers;
  for (int i = 0; i < 4; ++i) {
    writers.emplace_back([&] {
      for (int j = 0; j < 10; ++j) {
        cache.store(kKey, kText);
        EXPECT_EQ(cache.find(kKey, kVocab), kText);
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(test::names_in(dir.path()).size(), 1U);
}

TEST(TokenKey, ChangesWithEverythingThatTokensDependOn) {
  const std::vector<NamedText> files = {{"vocab.json", "ab"}, {"merges.txt", "c"}};
  const std::string key = token_key(files, "text", TextForm::plain);
  EXPECT_EQ(key, token_key(std::vector<NamedText>{{"elsewhere", "ab"}, {"m", "c"}}, "text", TextForm::plain));
  const std::set<std::string> others = {
      key, token_key(files, "text ", TextForm::plain), token_key(files, "text", TextForm::wikitext),
      token_key(std::vector<NamedText>{{"", "a"}, {"", "bc"}}, "text", TextForm::plain),
      token_key(std::vector<NamedText>{{"", "ab"}}, "text", TextForm::plain)};
  EXPECT_EQ(others.size(), 5U);
}

TEST(TokenCacheFolder, ComesFromTheEnvironment) {
  const test::Variable home("HOME", "/home/somebody");
  const test::Variable none("XDG_CACHE_HOME", nullptr);
  {
    const test::Variable unset("STRAIT_CACHE", nullptr);
    EXPECT_EQ(token_cache_folder(), "/home/somebody/.cache/strait");
    const test::Variable shared("XDG_CACHE_HOME", "/var/cache");
    EXPECT_EQ(token_cache_folder(), "/var/cache/strait");
  }
  const test::Variable own("STRAIT_CACHE", "/somewhere");
  EXPECT_EQ(token_cache_folder(), "/somewhere");
  const test::Variable off("STRAIT_CACHE", "");
  EXPECT_EQ(token_cache_folder(), "");
}

}  // namespace
}  // namespace strait
