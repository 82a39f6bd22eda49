#include "strait/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/errors.h"
#include "tests/support/nested.h"

namespace strait {
namespace {

using nlohmann::json;
using test::message_of;

TEST(ParseJson, GivesWhatTheLibraryDoes) {
  for (const char* text :
       {"null", "true", "-3", "18446744073709551615", "-9223372036854775808", "0.1", "-0.0", "1e-400",
        "\"caf\u00e9\\u0000\"", "[]", "{}", "[[], {}, [1, [2]], {\"a\": {\"b\": [null]}}]",
        " {\"b\": 1, \"a\": [1.5, \"x\"]}\n"}) {
    EXPECT_EQ(parse_json(text, "f"), json::parse(text)) << text;
    EXPECT_EQ(parse_json(text, "f").dump(), json::parse(text).dump()) << text;
  }
}

TEST(ParseJson, EqualKeysAreRefused) {
  const auto complaint = [](std::string_view text) {
    return message_of<InputError>([&] { parse_json(text, "f"); });
  };
  EXPECT_EQ(complaint(R"({"a": {"x": 1}, "a": {"y": 2}})"), "f: has the key \"a\" twice");
  EXPECT_EQ(complaint(R"({"a": 1, "b": 2, "\u0061": 1})"), "f: has the key \"a\" twice");
  EXPECT_EQ(complaint(R"({"": [], "": []})"), "f: has the key \"\" twice");
  EXPECT_EQ(complaint(R"([0, {"x": {"a\n": {"b": [], "b": []}}}])"), "f: [1].x.a : has the key \"b\" twice");
  EXPECT_EQ(complaint(R"({"a": {}, "b": [{"k\n": 1, "c": 0, "k\n": 1}]})"),
            "f: b[0]: has the key \"k\\n\" twice");
  EXPECT_EQ(parse_json(R"([{"a": {"a": 1}}, {"a": [{"a": 2}]}])", "f").size(), 2U);
}

TEST(ParseJson, HasALimitOfDepth) {
  EXPECT_EQ(parse_json(test::nested(100), "f").dump(), test::nested(100));
  for (const std::string& deep : {test::nested(101), test::nested(300'000), std::string(300'000, '['),
                                  "{\"a\": [" + test::nested(99) + "]}"}) {
    EXPECT_EQ(message_of<InputError>([&] { parse_json(deep, "f"); }), "f: is nested deeper than 100 levels");
  }
  std::string objects;
  for (int i = 0; i < 300'000; ++i) objects += "{\"a\":";
  EXPECT_EQ(message_of<InputError>([&] { parse_json(objects, "f"); }), "f: is nested deeper than 100 levels");
}

TEST(ParseJson, SiblingsAreNotLevels) {
  std::string wide = "[";
  for (int i = 0; i < 1000; ++i) wide += "[{}],";
  EXPECT_EQ(parse_json(wide + "[]]", "f").size(), 1001U);
}

TEST(ParseJson, NamesWhatIsWrong) {
  const auto complaint = [](std::string_view text) {
    return message_of<InputError>([&] { parse_json(text, "f"); });
  };
  EXPECT_EQ(complaint(""), "f: is not JSON (at byte 1)");
  EXPECT_EQ(complaint("{\"a\" 1}"), "f: is not JSON (at byte 6)");
  EXPECT_EQ(complaint("[1] 2"), "f: is not JSON (at byte 5)");
  EXPECT_EQ(complaint("\"\xff\""), "f: is not JSON (at byte 2)");
  EXPECT_EQ(complaint("NaN"), "f: is not JSON (at byte 1)");
  EXPECT_EQ(complaint(std::string_view("[1]\0", 4)), "f: is not JSON (at byte 4)");
  EXPECT_EQ(complaint(std::string_view("{\"a\": 1}\n\0{", 11)), "f: is not JSON (at byte 10)");
  EXPECT_EQ(complaint("[1e999]"), "f: the number 1e999 is too large (at byte 6)");
  EXPECT_EQ(complaint("-1" + std::string(400, '0') + ".5"),
            "f: the number -1" + std::string(98, '0') + "... is too large (at byte 404)");
}

TEST(ParseJson, ThrowsTheKindOfErrorThatIsAskedFor) {
  EXPECT_EQ(message_of<WireError>([] { parse_json<WireError>(test::nested(300'000), "a handshake"); }),
            "a handshake: is nested deeper than 100 levels");
  EXPECT_EQ(message_of<WireError>([] { parse_json<WireError>("{", "a handshake"); }),
            "a handshake: is not JSON (at byte 2)");
}

TEST(JsonString, QuotesAndReplacesWhatIsNotUtf8) {
  EXPECT_EQ(json_string("a\"\n\u00e9"), "\"a\\\"\\n\u00e9\"");
  EXPECT_EQ(json_string("a\xff"), "\"a\uFFFD\"");
}

}  // namespace
}  // namespace strait
