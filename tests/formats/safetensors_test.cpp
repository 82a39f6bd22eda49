#include "strait/formats/safetensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/complex.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "strait/base/error.h"
#include "strait/formats/safetensors_header.h"
#include "tests/support/errors.h"
#include "tests/support/python.h"
#include "tests/support/size_limit.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using ::testing::HasSubstr;

std::string file_of(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + header + data;
}

TensorFile parse(const std::string& bytes) { return parse_safetensors(std::as_bytes(std::span(bytes)), "f"); }

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape, offsets);
}

constexpr std::array kTypes = {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong,
                               at::kInt,    at::kShort, at::kChar, at::kByte,     at::kBool};

/// The tensors and metadata of tests/python/safetensors_interop.py.
TensorFile sample() {
  TensorFile file;
  file.metadata = {{"format", "pt"}, {"note", "caf\u00e9 \"quoted\""}};
  for (const auto type : kTypes) {
    const auto count = at::arange(6, at::kLong);
    const auto values = type == at::kBool ? count.remainder(2) : count.mul(3);
    file.tensors.emplace_back(std::string("t.") + safetensors_type_name(type), values.to(type).reshape({2, 3}));
  }
  file.tensors.emplace_back("scalar", at::scalar_tensor(-1.5, at::kFloat));
  file.tensors.emplace_back("empty", at::zeros({0, 4}));
  file.tensors.emplace_back("odd \"name\"\n\u00e9", at::tensor({1, -2}, at::kLong));
  return file;
}

void expect_equal(const TensorFile& found, const TensorFile& expected) {
  EXPECT_EQ(found.metadata, expected.metadata);
  ASSERT_EQ(found.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    const auto& [name, tensor] = expected.tensors[i];
    EXPECT_EQ(found.tensors[i].first, name);
    const auto& got = found.tensors[i].second;
    EXPECT_EQ(got.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_EQ(got.sizes(), tensor.sizes()) << name;
    EXPECT_TRUE(at::equal(got, tensor)) << name;
  }
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : fs::directory_iterator(folder)) names.push_back(item.path().filename().string());
  return names;
}

TEST(Safetensors, RoundTripOfEveryType) {
  const test::TempDir dir;
  write_safetensors(dir / "f.safetensors", sample());
  expect_equal(read_safetensors(dir / "f.safetensors"), sample());
  expect_equal(parse(test::read_file(dir / "f.safetensors")), sample());
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"f.safetensors"});
}

TEST(Safetensors, ExactBytes) {
  const test::TempDir dir;
  TensorFile file;
  file.metadata = {{"k", "v"}};
  file.tensors.emplace_back("w", at::tensor({1, 2}, at::kShort));
  write_safetensors(dir / "f", file);
  const std::string header =
      R"({"__metadata__":{"k":"v"},"w":{"dtype":"I16","shape":[2],"data_offsets":[0,4]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(test::read_file(dir / "f"), file_of(padded, std::string("\1\0\2\0", 4)));
}

TEST(Safetensors, NoTensorsAtAll) {
  const test::TempDir dir;
  write_safetensors(dir / "f", {});
  EXPECT_EQ(test::read_file(dir / "f"), file_of("{}      ", ""));
  EXPECT_TRUE(read_safetensors(dir / "f").tensors.empty());
}

TEST(Safetensors, ViewsAreWrittenDense) {
  const test::TempDir dir;
  const auto base = at::arange(12, at::kFloat).reshape({3, 4});
  TensorFile file;
  file.tensors.emplace_back("transposed", base.t());
  file.tensors.emplace_back("column", base.select(1, 2));
  file.tensors.emplace_back("expanded", base.select(0, 1).unsqueeze(0).expand({2, 4}));
  file.tensors.emplace_back("gradient", at::ones({2}).requires_grad_(true));
  file.tensors.emplace_back("negative", at::imag(at::complex(at::ones({2}), at::ones({2})).conj()));
  write_safetensors(dir / "f", file);
  const TensorFile read = read_safetensors(dir / "f");
  expect_equal(read, file);
  EXPECT_FALSE(read.find("gradient")->requires_grad());
}

TEST(Safetensors, FindByName) {
  const TensorFile file = sample();
  ASSERT_NE(file.find("scalar"), nullptr);
  EXPECT_EQ(file.find("scalar")->item<float>(), -1.5F);
  EXPECT_EQ(file.find("scala"), nullptr);
}

TEST(Safetensors, TensorsOutliveTheFileAndDoNotShareElements) {
  const test::TempDir dir;
  TensorFile file;
  file.tensors.emplace_back("a", at::zeros({3}));
  file.tensors.emplace_back("b", at::ones({3}));
  write_safetensors(dir / "f", file);
  at::Tensor a = *read_safetensors(dir / "f").find("a");
  a.fill_(7);
  EXPECT_EQ(a.sum().item<float>(), 21);
  TensorFile both = read_safetensors(dir / "f");
  both.tensors[0].second.fill_(7);
  EXPECT_TRUE(at::equal(both.tensors[1].second, at::ones({3})));
}

/// Data that do not begin at a multiple of the element's size are copied, not read in place.
TEST(Safetensors, UnalignedTensors) {
  const test::TempDir dir;
  TensorFile file;
  file.tensors.emplace_back("byte", at::ones({3}, at::kByte));
  file.tensors.emplace_back("double", at::arange(4, at::kDouble));
  file.tensors.emplace_back("half", at::arange(3, at::kHalf));
  write_safetensors(dir / "f", file);
  const TensorFile read = read_safetensors(dir / "f");
  expect_equal(read, file);
  for (const auto& [name, tensor] : read.tensors) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.data_ptr()) % tensor.element_size(), 0U) << name;
  }
}

TEST(Safetensors, HeaderInAnotherOrderThanTheData) {
  const auto file =
      parse(file_of("{" + entry("late", "U8", "[1]", "[2,3]") + "," + entry("none", "U8", "[0]", "[2,2]") +
                        "," + entry("early", "U8", "[2]", "[0,2]") + "}  ",
                    "\1\2\3"));
  ASSERT_EQ(file.tensors.size(), 3U);
  EXPECT_EQ(file.tensors[0].first, "early");
  EXPECT_EQ(file.tensors[1].first, "none");
  EXPECT_EQ(file.tensors[2].first, "late");
  EXPECT_EQ(file.find("late")->item<uint8_t>(), 3);
}

TEST(Safetensors, SingleTensorsAreReadIntoTheMemoryThatFits) {
  const test::TempDir dir;
  write_safetensors(dir / "f", sample());
  const SafetensorsReader reader(dir / "f");
  const TensorEntry* entry = reader.find("t.F32");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(reader.find("t.F3"), nullptr);
  const at::Tensor expected = *sample().find("t.F32");

  at::Tensor fits = at::zeros({2, 3});
  const at::Tensor same = fits;
  reader.read(*entry, fits);
  EXPECT_TRUE(fits.is_same(same));
  EXPECT_TRUE(at::equal(same, expected));

  // An undefined one, other shapes and types, and one that is not dense are replaced and stay as they were.
  for (at::Tensor other :
       {at::Tensor(), at::zeros({3, 2}), at::zeros({2, 3}, at::kInt), at::zeros({3, 2}).t()}) {
    const at::Tensor before = other;
    reader.read(*entry, other);
    EXPECT_FALSE(other.is_same(before));
    EXPECT_TRUE(at::equal(other, expected));
    EXPECT_TRUE(!before.defined() || before.sum().item<float>() == 0);
  }
}

TEST(Safetensors, AWriterIsHeardTensorByTensor) {
  const test::TempDir dir;
  TensorFile file;
  file.tensors.emplace_back("a", at::ones({2}, at::kByte));
  file.tensors.emplace_back("b", at::arange(4, at::kFloat).reshape({2, 2}).t());
  std::vector<std::string> names;
  write_safetensors(dir / "f", file, [&](const TensorEntry& entry, std::span<const std::byte> bytes) {
    names.push_back(entry.name);
    EXPECT_EQ(bytes.size(), entry.end - entry.begin);
  });
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));
}

struct BadFile {
  std::string header;
  std::string data;
  std::string message;
};

std::string deep(int levels) {
  std::string open;
  for (int i = 0; i < levels; ++i) open += "{\"a\":";
  return open;
}

const std::vector<BadFile>& bad_files() {
  static const std::vector<BadFile> kFiles = {
      {"", "", "f: header at offset 8 does not begin with \"{\""},
      {" {}", "", "f: header at offset 8 does not begin with \"{\""},
      {"[]", "", "f: header at offset 8 does not begin with \"{\""},
      {"{", "", "f: header: is not JSON (at byte 2)"},
      {"{}x", "", "f: header: is not JSON (at byte 3)"},
      {"{}{}", "", "f: header: is not JSON (at byte 3)"},
      {std::string("{}\0\0", 4), "", "f: header: is not JSON (at byte 3)"},
      {std::string("{}  \0x", 6), "", "f: header: is not JSON (at byte 5)"},
      {"{\"a\xff\":{}}", "", "f: header: is not JSON (at byte 4)"},
      {"{\"a\":1}", "", "f: tensor \"a\": expected an object, found 1"},
      {"{\"a\":[]}", "", "f: tensor \"a\": expected an object, found array"},
      {"{\"a\":null}", "", "f: tensor \"a\": expected an object, found null"},
      {"{\"a\":{}}", "", "f: tensor \"a\": data_offsets: missing"},
      {R"({"a":{"dtype":"U8","shape":[0]}})", "", "f: tensor \"a\": data_offsets: missing"},
      {R"({"a":{"dtype":"U8","data_offsets":[0,0]}})", "", "f: tensor \"a\": shape: missing"},
      {R"({"a":{"dtype":"U8","dtype":"U8"}})", "", "f: header: a: has the key \"dtype\" twice"},
      {R"({"a":{"kind":"U8"}})", "", "f: tensor \"a\" has the unknown key \"kind\""},
      {R"({"a":{"dtype":8,"shape":[],"data_offsets":[0,1]}})", "",
       "f: tensor \"a\": dtype: expected a string, found 8"},
      {"{" + entry("a", "U8", "\"x\"", "[0,1]") + "}", "x",
       "f: tensor \"a\": shape: expected an array, found \"x\""},
      {"{" + entry("a", "U8", "[2,-1]", "[0,1]") + "}", "x",
       "f: tensor \"a\": shape[1]: expected an integer >= 0, found -1"},
      {"{" + entry("a", "U8", "[1.0]", "[0,1]") + "}", "x", "shape[0]: expected an integer >= 0, found 1.0"},
      {"{" + entry("a", "U8", "[true]", "[0,1]") + "}", "x", "shape[0]: expected an integer >= 0, found true"},
      {"{" + entry("a", "U8", "[[1]]", "[0,1]") + "}", "x", "shape[0]: expected an integer >= 0, found array"},
      {"{" + entry("a", "U8", "[18446744073709551616]", "[0,1]") + "}", "x",
       "shape[0]: expected an integer >= 0, found 1.8446744073709552e+19"},
      {"{" + entry("a", "U8", "[9223372036854775808]", "[0,1]") + "}", "x",
       "shape[0]: expected an integer from 0 to 9223372036854775807, found 9223372036854775808"},
      {R"({"a":{"data_offsets":[0,1]}})", "x", "f: tensor \"a\": dtype: missing"},
      {"{" + entry("a", "U8", "[1]", "{}") + "}", "x",
       "f: tensor \"a\": data_offsets: expected an array, found object"},
      {"{" + entry("a", "U8", "[1]", "[0,1,2]") + "}", "x",
       "f: tensor \"a\": data_offsets: expected an array of two integers, found array"},
      {"{" + entry("a", "U8", "[1]", "[0]") + "}", "x",
       "f: tensor \"a\": data_offsets: expected an array of two integers, found array"},
      {"{" + entry("a", "U8", "[1]", "[0,-1]") + "}", "x",
       "f: tensor \"a\": data_offsets[1]: expected an integer >= 0, found -1"},
      {"{" + entry("a", "F8_E4M3", "[1]", "[0,1]") + "}", "x",
       "f: tensor \"a\": dtype: expected one of F64, F32, F16, BF16, I64, I32, I16, I8, U8, BOOL, found "
       "\"F8_E4M3\""},
      {"{" + entry("a", "f32", "[1]", "[0,4]") + "}", "xxxx", "f: tensor \"a\": dtype: expected one of"},
      {"{" + entry("a", "U8", "[1]", "[1,0]") + "}", "x", "has data_offsets [1, 0], expected them in order"},
      {"{" + entry("a", "U8", "[2]", "[0,2]") + "}", "x",
       "has data_offsets [0, 2], expected them in order and within 0 to 1"},
      {"{" + entry("a", "U8", "[0]", "[9,9]") + "}", "x",
       "has data_offsets [9, 9], expected them in order and within"},
      {"{" + entry("a", "F32", "[1]", "[0,3]") + "}", "xxx",
       "tensor \"a\" of F32 [1] needs 4 bytes, but its data_offsets [0, 3] give 3"},
      {"{" + entry("a", "F32", "[2, 0]", "[0,3]") + "}", "xxx", "tensor \"a\" of F32 [2, 0] needs 0 bytes"},
      {"{" + entry("a", "U8", "[4294967296,4294967296]", "[0,0]") + "}", "",
       "tensor \"a\" of shape [4294967296, 4294967296] is too large"},
      {"{" + entry("a", "F64", "[2305843009213693952]", "[0,0]") + "}", "", "is too large"},
      {"{" + entry("a", "U8", "[4294967296,0,4294967296]", "[0,0]") + "}", "", "is too large"},
      {"{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[2,3]") + "}", "xxx",
       "f: tensor \"b\" begins at data offset 2, expected 1 (a gap)"},
      {"{" + entry("a", "U8", "[2]", "[0,2]") + "," + entry("b", "U8", "[2]", "[1,3]") + "}", "xxx",
       "f: tensor \"b\" begins at data offset 1, expected 2 (it overlaps another)"},
      {"{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[1]", "[0,1]") + "}", "x",
       "expected 1 (it overlaps another)"},
      {"{" + entry("a", "U8", "[1]", "[1,2]") + "}", "xx",
       "f: tensor \"a\" begins at data offset 1, expected 0 (a gap)"},
      {"{" + entry("a", "U8", "[1]", "[0,1]") + "}", "xyz",
       "f: 2 bytes follow the last tensor, which ends at data offset 1"},
      {"{}", "x", "f: 1 bytes follow the last tensor"},
      {"{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("a", "U8", "[1]", "[1,2]") + "}", "xx",
       "f: header: has the key \"a\" twice"},
      {"{" + entry("a", "BOOL", "[3]", "[0,3]") + "}", std::string("\0\1\2", 3),
       "f: tensor \"a\" of BOOL has the value 2 at data offset 2, expected 0 or 1"},
      {R"({"__metadata__":{"k":1}})", "", "f: __metadata__: k: expected a string, found 1"},
      {R"({"__metadata__":{"line\nbreak":1}})", "", "f: __metadata__: line break: expected a string, found 1"},
      {R"({"__metadata__":{"k":{}}})", "", "f: __metadata__: k: expected a string, found object"},
      {R"({"__metadata__":"x"})", "", "f: __metadata__: expected an object, found \"x\""},
      {R"({"__metadata__":{"k":"1","k":"2"}})", "", "f: header: __metadata__: has the key \"k\" twice"},
      {R"({"__metadata__":{},"__metadata__":{}})", "", "f: header: has the key \"__metadata__\" twice"},
      {deep(100000), "", "f: header: is nested deeper than 100 levels"},
      {"{\"a\":{\"shape\":" + std::string(100000, '['), "", "f: header: is nested deeper than 100 levels"},
      {R"({"line\nbreak":1})", "", "f: tensor \"line\\nbreak\": expected an object, found 1"},
  };
  return kFiles;
}

TEST(Safetensors, MalformedHeadersAreRefused) {
  for (const auto& bad : bad_files()) {
    const auto message = message_of<InputError>([&] { parse(file_of(bad.header, bad.data)); });
    EXPECT_THAT(message, HasSubstr(bad.message)) << bad.header.substr(0, 200);
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  }
}

TEST(Safetensors, ManyDimensionsAreRefused) {
  std::string shape = "[1";
  for (int i = 0; i < 64; ++i) shape += ",1";
  const auto message =
      message_of<InputError>([&] { parse(file_of("{" + entry("a", "U8", shape + "]", "[0,1]") + "}", "x")); });
  EXPECT_EQ(message, "f: tensor \"a\": shape: expected at most 64 dimensions, found array");
}

TEST(Safetensors, HeaderLengthIsChecked) {
  const auto with_length = [](uint64_t length, const std::string& rest) {
    return std::string(reinterpret_cast<const char*>(&length), sizeof(length)) + rest;
  };
  const auto message = [](const std::string& bytes) { return message_of<InputError>([&] { parse(bytes); }); };
  EXPECT_EQ(message(""), "f: is not a safetensors file (has 0 bytes, expected at least 8)");
  EXPECT_EQ(message("1234567"), "f: is not a safetensors file (has 7 bytes, expected at least 8)");
  EXPECT_EQ(message(with_length(3, "{}")), "f: header length is 3, but only 2 bytes follow it");
  EXPECT_EQ(message(with_length(100'000'000, "{}")),
            "f: header length is 100000000, but only 2 bytes follow it");
  EXPECT_EQ(message(with_length(100'000'001, "{}")),
            "f: is not a safetensors file (header length is 100000001, expected at most 100000000)");
  EXPECT_EQ(message(with_length(std::numeric_limits<uint64_t>::max(), "{}")),
            "f: is not a safetensors file (header length is 18446744073709551615, expected at most 100000000)");
}

/// Cutting a valid file anywhere gives an error, from memory and from disk.
TEST(Safetensors, EveryTruncationIsRefused) {
  const test::TempDir dir;
  write_safetensors(dir / "f", sample());
  const std::string whole = test::read_file(dir / "f");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THROW(parse(whole.substr(0, size)), InputError) << size;
  }
  for (size_t size = 0; size < whole.size(); size += 97) {
    test::write_file(dir / "cut", whole.substr(0, size));
    EXPECT_THAT(message_of<InputError>([&] { read_safetensors(dir / "cut"); }), HasSubstr("/cut: ")) << size;
  }
}

TEST(Safetensors, UnreadableFilesAreInputErrors) {
  const test::TempDir dir;
  EXPECT_THAT(message_of<InputError>([&] { read_safetensors(dir / "none"); }),
              HasSubstr("/none: cannot be opened: No such file or directory"));
  EXPECT_THAT(message_of<InputError>([&] { read_safetensors(dir.path()); }),
              HasSubstr("expected a file, found a folder"));
  EXPECT_THAT(message_of<InputError>([&] { read_safetensors("/dev/zero"); }),
              HasSubstr("expected a file, found a device"));
}

/// A file that claims a terabyte is refused by its header, before memory is asked for.
TEST(Safetensors, AHugeHoleIsRefusedBeforeItIsRead) {
  const test::TempDir dir;
  test::write_file(dir / "f", file_of("{}", ""));
  fs::resize_file(dir / "f", uint64_t{1} << 40);
  EXPECT_THAT(message_of<InputError>([&] { read_safetensors(dir / "f"); }),
              HasSubstr("1099511627766 bytes follow the last tensor"));
}

TEST(Safetensors, WhatCannotBeWrittenIsNamed) {
  const test::TempDir dir;
  const auto failure = [&](TensorFile file) {
    const auto message = message_of<Error>([&] { write_safetensors(dir / "f", file); });
    EXPECT_TRUE(names_in(dir.path()).empty()) << message;
    return message;
  };
  const auto one = at::ones({1});
  EXPECT_THAT(failure({{{"a", one}, {"a", one}}, {}}),
              HasSubstr("/f: tensor \"a\" cannot be written: the name is taken"));
  EXPECT_THAT(failure({{{"__metadata__", one}}, {}}), HasSubstr("the name is taken"));
  EXPECT_THAT(failure({{{"a", at::Tensor()}}, {}}),
              HasSubstr("tensor \"a\" cannot be written: it has no value"));
  EXPECT_THAT(failure({{{"a", at::complex(one, one)}}, {}}), HasSubstr("safetensors has no type for"));
  EXPECT_THAT(failure({{{"a", one.to_sparse()}}, {}}), HasSubstr("safetensors has no type for"));
  EXPECT_THAT(failure({{{"\xff", one}}, {}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(failure({{{"a", one}}, {{"k", "\xff"}}}), HasSubstr("not UTF-8"));
  EXPECT_THAT(message_of<Error>([&] { write_safetensors(dir / "no" / "f", {}); }),
              HasSubstr("/no/f: cannot be written: No such file or directory"));
}

TEST(Safetensors, AFullDiskKeepsTheOldFile) {
  const test::TempDir dir;
  TensorFile old;
  old.tensors.emplace_back("a", at::ones({4}));
  write_safetensors(dir / "f", old);
  TensorFile large;
  large.tensors.emplace_back("a", at::zeros({100000}));
  {
    const test::SizeLimit limit(50000);
    EXPECT_THAT(message_of<Error>([&] { write_safetensors(dir / "f", large); }),
                HasSubstr("/f: cannot be written"));
  }
  EXPECT_EQ(names_in(dir.path()), std::vector<std::string>{"f"});
  expect_equal(read_safetensors(dir / "f"), old);
}

/// Against a reader and a writer in Python that share no code with this one.
TEST(Safetensors, PythonReadsWhatIsWritten) {
  const test::TempDir dir;
  write_safetensors(dir / "f", sample());
  EXPECT_NO_THROW(test::run_torch_python("safetensors_interop.py", "check '" + (dir / "f").string() + "'"));
}

TEST(Safetensors, ReadsWhatPythonWrites) {
  const test::TempDir dir;
  ASSERT_NO_THROW(test::run_torch_python("safetensors_interop.py", "write '" + (dir / "f").string() + "'"));
  expect_equal(read_safetensors(dir / "f"), sample());
}

}  // namespace
}  // namespace strait
