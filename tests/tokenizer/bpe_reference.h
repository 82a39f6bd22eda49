#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "strait/tokenizer/bpe_encoder.h"
#include "tests/support/python.h"
#include "tests/support/temp_dir.h"

namespace strait::test {

/// Texts on which a tokenizer can go wrong.
inline std::vector<std::string> hostile_texts() {
  std::vector<std::string> texts = {
      "", " ", "the other thing's 1900", "it'S I'VE WE'LL he'D 'sos 'rent ''s '\xe2\x80\x99s",
      "e\xcc\x81 o\xcc\x88\xcc\xa3 \xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7 a\xe2\x83\x9d",  // combining marks
      "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 "
      "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa "
      "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd\xef\xb8\x8f",  // emoji, joined and coloured
      "\xd7\xa9\xd7\x9c\xd7\x95\xd7\x9d \xd8\xa7\xd9\x84\xd8\xb3\xd9\x84 \xe2\x80\x8f\xe2\x80\xab a "
      "\xe2\x80\xac",
      "\xd9\xa3\xd9\xa4 \xe0\xa5\xa7\xe0\xa5\xa8 \xe2\x85\xa7 \xc2\xbd\xc2\xb2 \xef\xbc\x91\xef\xbc\x92 "
      "\xf0\x9d\x9f\x98",
      "\xe3\x81\x82\xe3\x82\x8a\xe3\x81\x8c \xe6\xbc\xa2\xe5\xad\x97 \xed\x95\x9c\xea\xb8\x80",
      std::string("a\0b \0\0 c", 8), "line\r\nline\r\n\r\n \r\n\ttab\v\f x", "<|endoftext|> <|end",
      "\xef\xbb\xbf"
      "bom \xef\xbf\xbd \xef\xbf\xbf \xf4\x8f\xbf\xbf",
      "a\x1c\x1d\x1e\x1f"
      "b\x7f\xc2\x80\xc2\xad",
      // Malformed: stray, overlong, surrogates, beyond U+10FFFF, cut off.
      "ab\xff\xfe cd \x80\xbf the", "\xc0\x80 \xc1\xbf \xe0\x80\xaf \xe0\x9f\xbf \xf0\x8f\xbf\xbf the",
      "\xed\xa0\x80\xed\xb0\x80 \xed\xbf\xbf",
      "\xf4\x90\x80\x80 \xf5\x80\x80\x80 \xf8\x88\x80\x80\x80 \xfc\x84\x80\x80\x80\x80",
      "  \xe2\x80  \xf0\x9f\x91  \xc3", std::string(20'000, 'a') + "b" + std::string(3'000, ' ') + "x",
      "xyxyz yxyx xyzxyz " + std::string(999, '0'),
      "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogoch supercalifragilisticexpialidocious"};
  // Every kind of Unicode's spaces, and what is none, alone and in company.
  for (const char* space : {"\t", "\v", "\x1c", "\x1f", "\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80", "\xe1\xa0\x8e",
                            "\xe2\x80\x80", "\xe2\x80\x8a", "\xe2\x80\x8b", "\xe2\x80\xa8", "\xe2\x80\xa9",
                            "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe2\x81\xa0", "\xe3\x80\x80", "\xef\xbb\xbf"}) {
    texts.push_back(fmt::format("a{0}b {0}c{0} d{0}{0}e\n{0}{0}", space));
  }
  return texts;
}

/// Fails the test unless the tokenizer of the folder, whose files Python reads as well, gives the reference's
/// ids.
inline void expect_ids_of_reference(const std::filesystem::path& folder,
                                    const std::vector<std::string>& texts) {
  const TempDir dir;
  std::string hex;
  for (const auto& text : texts) {
    for (const char c : text) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
    hex += '\n';
  }
  write_file(dir / "texts", hex);
  const std::string expected = run_python("bpe_reference.py", folder.string() + " " + (dir / "texts").string());
  const Tokenizer tokenizer = load_tokenizer(folder);
  BpeEncoder encoder(tokenizer);
  size_t begin = 0;
  for (const auto& text : texts) {
    std::vector<int32_t> ids;
    encoder.append(text, ids);
    const size_t end = expected.find('\n', begin);
    ASSERT_NE(end, std::string::npos);
    EXPECT_EQ(fmt::format("{}", fmt::join(ids, " ")), expected.substr(begin, end - begin))
        << text.substr(0, 200);
    begin = end + 1;
  }
  EXPECT_EQ(begin, expected.size());
}

}  // namespace strait::test
