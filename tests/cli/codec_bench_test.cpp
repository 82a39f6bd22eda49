#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "strait/formats/safetensors.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;

test::ProcessResult bench(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"codec", "bench"});
  return test::run_process(STRAIT_PROGRAM, arguments);
}

/// The keys of the interface, and that a row is one of what was asked for.
void expect_row(const json& row, const std::string& codec, const std::string& feedback,
                const std::string& shape, const std::string& data) {
  EXPECT_EQ(row.at("codec"), codec);
  EXPECT_EQ(row.at("feedback"), feedback);
  EXPECT_EQ(row.at("shape"), shape);
  EXPECT_EQ(row.at("data"), data);
  for (const char* key : {"encode_gb_s", "decode_gb_s", "encode_memcpy_ratio", "decode_memcpy_ratio",
                          "reference_gb_s", "bits_per_element"}) {
    EXPECT_GT(row.at(key).get<double>(), 0) << key;
  }
}

TEST(CodecBench, PrintsARowForEveryInputAndCodec) {
  const auto result = bench({"--codec", "fp16", "--codec", "topk:0.1,index=bitmap", "--feedback", "ef21",
                             "--shape", "8x40x100", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  const auto report = json::parse(result.out);
  EXPECT_GT(report.at("memcpy_gb_s").get<double>(), 0);
  const auto& rows = report.at("results");
  ASSERT_EQ(rows.size(), 4);
  for (size_t i = 0; i < rows.size(); ++i) {
    expect_row(rows[i], i % 2 == 0 ? "fp16" : "topk:0.1,index=bitmap", "ef21", "8x40x100",
               i < 2 ? "normal" : "relu");
  }
  EXPECT_EQ(rows[0]["bits_per_element"], 16);
  EXPECT_GT(rows[1]["relative_error"].get<double>(), rows[0]["relative_error"].get<double>());
  EXPECT_GT(rows[0]["relative_error"].get<double>(), 0);
  EXPECT_TRUE(rows[0].at("index_bits").is_null());
  EXPECT_TRUE(rows[0].at("index_bound_bits").is_null());
  EXPECT_DOUBLE_EQ(rows[1].at("index_bits"), 1 + 40.0 / 4000);
  EXPECT_NEAR(rows[1].at("index_bound_bits"), 0.469, 0.002);  // the entropy of 0.1, and a little less
}

TEST(CodecBench, TakesTheTensorsOfAFile) {
  test::TempDir dir;
  TensorFile file;
  file.tensors = {{"left", at::ones({3, 50})}, {"right", at::zeros({2, 4, 8})}};
  write_safetensors(dir / "in.safetensors", file);
  const auto result = bench({"--codec", "quant:4,scope=sample", "--in", dir / "in.safetensors", "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  const auto rows = json::parse(result.out).at("results");
  ASSERT_EQ(rows.size(), 2);
  expect_row(rows[0], "quant:4,scope=sample", "none", "3x50", "left");
  expect_row(rows[1], "quant:4,scope=sample", "none", "2x4x8", "right");
  EXPECT_DOUBLE_EQ(rows[0]["bits_per_element"], 8.0 * 3 * (8 + 25) / 150);
}

TEST(CodecBench, PrintsATableOfTheFirstCodecs) {
  test::TempDir dir;
  TensorFile file;
  file.tensors = {{"x", at::rand({4, 64})}};
  write_safetensors(dir / "in.safetensors", file);
  const auto result = bench({"--in", dir / "in.safetensors", "--threads", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("4x64, x: 0.0 MB"));
  for (const char* codec : {"none", "fp16", "bf16", "quant:4", "topk:0.1"}) {
    EXPECT_THAT(result.out, testing::ContainsRegex(std::string("\n") + codec + " +[0-9.]+ +[0-9.]+ +[0-9.]+"));
  }
  EXPECT_THAT(result.out, testing::ContainsRegex("\nmemcpy [0-9.]+ GB/s"));
}

}  // namespace
}  // namespace strait
