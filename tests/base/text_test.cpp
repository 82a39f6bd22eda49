#include "strait/base/text.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "strait/base/error.h"

namespace strait {
namespace {

const std::vector<std::string> kKeys = {"epochs", "batch_size", "momentum", "lr"};

TEST(Text, SuggestsTheNearestName) {
  EXPECT_EQ(suggestion("epoch", kKeys), " (did you mean \"epochs\"?)");
  EXPECT_EQ(suggestion("batchsize", kKeys), " (did you mean \"batch_size\"?)");
  EXPECT_EQ(suggestion("rl", kKeys), " (did you mean \"lr\"?)");
  EXPECT_EQ(suggestion("optimizer", kKeys), "");
}

TEST(Text, NothingIsSuggestedForWhatIsLongerThanAnyName) {
  EXPECT_EQ(suggestion(std::string(50'000'000, 'x'), kKeys), "");
  const std::vector<std::string> long_names = {std::string(50'000'000, 'l'), "lrs"};
  EXPECT_EQ(suggestion("lr", long_names), " (did you mean \"lrs\"?)");
}

TEST(Text, WhatATerminalWouldObeyIsEscaped) {
  EXPECT_EQ(printable("caf\u00e9 \u20ac \U0001F600\n\tx"), "caf\u00e9 \u20ac \U0001F600\n\tx");
  EXPECT_EQ(printable("\x1b[2J"), "\\u001b[2J");
  EXPECT_EQ(printable("a\u009b2Jb\u0080\u009f\u00a0"), "a\\u009b2Jb\\u0080\\u009f\u00a0");
  EXPECT_EQ(printable(std::string("\0\a\r\x7f", 4)), "\\u0000\\u0007\\u000d\\u007f");
  EXPECT_EQ(printable("a\u202eb\u2066\u2028"), "a\\u202eb\\u2066\\u2028");
  EXPECT_EQ(printable("\x9b"
                      "2J \xc3"),
            "\\x9b2J \\xc3");  // bytes, as a terminal of eight bits takes them
  EXPECT_EQ(printable("\xed\xa0\x80 \xf5"), "\\xed\\xa0\\x80 \\xf5");
  EXPECT_EQ(printable(""), "");
}

TEST(Text, OneLineHasNoEndOfLine) { EXPECT_EQ(one_line("a\r\nb\tc\x1b"), "a  b c\\u001b"); }

TEST(Text, NamesOfFilesStandInQuotesOnOneLine) {
  EXPECT_EQ(in_quotes("a \"b\"\\\n\tcaf\u00e9"), "\"a \\\"b\\\"\\\\\\n\\tcaf\u00e9\"");
  EXPECT_EQ(in_quotes("\r\x1b[2J\xff"), "\"\\u000d\\u001b[2J\\xff\"");
  EXPECT_EQ(in_quotes(""), "\"\"");
}

TEST(Text, LongNamesAreCutBehindAWholeCharacter) {
  const std::string spaces(98, ' ');
  EXPECT_EQ(in_quotes("\u00e9" + spaces), "\"\u00e9" + spaces + "\"");
  EXPECT_EQ(in_quotes("\u00e9" + spaces + "x"), "\"\u00e9" + spaces + "...\"");
  EXPECT_EQ(in_quotes(spaces + " \u00e9"), "\"" + spaces + " ...\"");
}

TEST(Text, TheReasonOfAnExceptionIsOneClearLine) {
  const auto reason = [](const std::string& what) { return reason_text(std::runtime_error(what)); };
  EXPECT_EQ(reason("first\nsecond"), "first");
  EXPECT_EQ(reason_text(std::bad_alloc()), "out of memory");
  const auto too_long = std::make_error_code(std::errc::filename_too_long);
  EXPECT_EQ(reason_text(std::filesystem::filesystem_error("status", "a/b", too_long)),
            "a/b: File name too long");
  // As the LibTorch of 2.x and 1.x say it.
  for (const char* words :
       {"[enforce fail at alloc_cpu.cpp:126] data. DefaultCPUAllocator: not enough memory: you "
        "tried to allocate 4000000000000 bytes.",
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: "
        "you tried to allocate 4000000000000 bytes. Error code 12 (Cannot allocate memory)"}) {
    EXPECT_EQ(reason(words), "out of memory: no room for a tensor of 4000000000000 bytes");
  }
}

TEST(Text, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(split("", ','), (std::vector<std::string>{""}));
}

TEST(Text, IntegersAreChecked) {
  EXPECT_EQ(parse_integer("8", "bits", 1, 8), 8);
  for (const char* bad : {"", "9", "0", "-1", "4x", "4.0", " 4", "99999999999999999999"}) {
    EXPECT_THROW(parse_integer(bad, "bits", 1, 8), InputError) << bad;
  }
}

}  // namespace
}  // namespace strait
