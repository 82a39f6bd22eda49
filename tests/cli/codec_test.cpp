#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "strait/codecs/codec.h"
#include "strait/formats/safetensors.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using nlohmann::json;
using testing::HasSubstr;

test::ProcessResult strait(const std::vector<std::string>& arguments) {
  return test::run_process(STRAIT_PROGRAM, arguments);
}

TEST(Help, NamesEveryVerb) {
  const auto help = strait({"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_THAT(help.out, HasSubstr("codec"));
  EXPECT_THAT(help.out, HasSubstr("Exit status"));
  EXPECT_THAT(strait({"codec", "apply", "--help"}).out, HasSubstr("--feedback"));
  EXPECT_THAT(strait({"codec", "--help"}).out, HasSubstr("apply"));
}

TEST(Help, OfAVerbIsWhatItsFlagPrints) {
  for (const char* verb : {"frontier", "launch", "report", "sweep", "train"}) {
    EXPECT_THAT(strait({verb, "--help"}).out, testing::Not(HasSubstr("... ..."))) << verb;
  }
  EXPECT_EQ(strait({"help"}).out, strait({"--help"}).out);
  EXPECT_EQ(strait({"help", "train"}).out, strait({"train", "--help"}).out);
  EXPECT_EQ(strait({"help", "codec", "apply"}).out, strait({"codec", "apply", "--help"}).out);
  const auto wrong = strait({"help", "trian"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr("did you mean \"train\"?"));
  EXPECT_EQ(strait({"trian", "--help"}).err, wrong.err);
}

TEST(Version, IsOneLine) {
  const auto version = strait({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_THAT(version.out,
              testing::MatchesRegex("strait [0-9.]+\\+[0-9a-z-]+ \\(LibTorch [0-9]+\\.[0-9]+\\.[^ ]+\\)\n"));
}

TEST(Output, AReaderThatLeavesIsNoErrorAndAFullDiskIsOne) {
  const std::string program = STRAIT_PROGRAM;
  EXPECT_EQ(test::run_process("/bin/bash", {"-c", "set -o pipefail; " + program + " codec list | true"}).status,
            0);
  const auto full = test::run_process("/bin/sh", {"-c", program + " codec list > /dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("strait: cannot write standard output: No space left on device"));
}

TEST(CodecList, ListsEveryCodec) {
  const auto listed = strait({"codec", "list", "--json"});
  ASSERT_EQ(listed.status, 0) << listed.err;
  const auto codecs = json::parse(listed.out).at("codecs");
  const auto table = strait({"codec", "list"}).out;
  ASSERT_EQ(codecs.size(), codec_list().size());
  for (size_t i = 0; i < codecs.size(); ++i) {
    const auto& info = codec_list()[i];
    EXPECT_EQ(codecs[i].at("name"), info.name);
    EXPECT_EQ(codecs[i].at("id"), info.id);
    EXPECT_EQ(codecs[i].at("samples"), info.samples);
    EXPECT_THAT(table, HasSubstr(std::string(info.name)));
  }
}

class CodecApply : public testing::TestWithParam<std::string> {
 protected:
  json apply(const std::vector<at::Tensor>& messages) {
    TensorFile file;
    // From last to first: names give the order, not the place in the file.
    for (size_t i = messages.size(); i-- > 0;) file.tensors.emplace_back(std::to_string(i), messages[i]);
    write_safetensors(dir_ / "in.safetensors", file);
    const auto result = strait({"codec", "apply", "--codec", GetParam(), "--in", dir_ / "in.safetensors",
                                "--out", dir_ / "out.safetensors", "--json"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }

  TensorFile received() { return read_safetensors(dir_ / "out.safetensors"); }

  test::TempDir dir_;
};

TEST_P(CodecApply, ReportsWhatTheReceiverSees) {
  at::manual_seed(1);
  const std::vector<at::Tensor> messages = {at::randn({4, 64}), at::zeros({8, 64}),
                                            at::randn({3, 2, 2, 64}).relu()};
  const auto report = apply(messages);
  const auto file = received();
  const auto codec = make_codec(GetParam());
  ASSERT_EQ(report.at("messages").size(), messages.size());
  ASSERT_EQ(file.tensors.size(), messages.size());
  size_t raw_bytes = 0;
  size_t wire_bytes = 0;
  double max_abs_error = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    SCOPED_TRACE(i);
    const at::Tensor& x = messages[i];
    const at::Tensor* y = file.find(std::to_string(i));
    ASSERT_NE(y, nullptr);
    EXPECT_TRUE(at::equal(*y, codec->reconstruct(x, {.step = i})));

    const auto& row = report["messages"][i];
    EXPECT_EQ(row.at("raw_bytes"), x.nbytes());
    EXPECT_GE(row.at("wire_bytes").get<size_t>(), kFrameHeaderSize);
    EXPECT_LE(row.at("wire_bytes").get<size_t>(), kFrameHeaderSize + codec->payload_size(meta_of(x)).bound);
    EXPECT_DOUBLE_EQ(row.at("ratio"), row["raw_bytes"].get<double>() / row["wire_bytes"].get<double>());
    const double norm = x.to(at::kDouble).norm().item<double>();
    const at::Tensor error = x.to(at::kDouble) - y->to(at::kDouble);
    const double expected = norm == 0 ? 0 : error.norm().item<double>() / norm;
    EXPECT_NEAR(row.at("relative_error"), expected, 1e-12);
    EXPECT_EQ(row.at("max_abs_error"), error.abs().max().item<double>());
    EXPECT_GT(row.at("encode_seconds"), 0);
    EXPECT_GT(row.at("decode_seconds"), 0);
    raw_bytes += x.nbytes();
    wire_bytes += row["wire_bytes"].get<size_t>();
    max_abs_error = std::max(max_abs_error, row["max_abs_error"].get<double>());
  }
  const auto& total = report.at("total");
  EXPECT_EQ(total.at("raw_bytes"), raw_bytes);
  EXPECT_EQ(total.at("wire_bytes"), wire_bytes);
  EXPECT_EQ(total.at("max_abs_error"), max_abs_error);
}

TEST_P(CodecApply, TakesAnEmptyMessage) {
  const auto report = apply({at::empty({0, 3})});
  EXPECT_EQ(report["messages"][0]["raw_bytes"], 0);
  EXPECT_EQ(report["messages"][0]["wire_bytes"], kFrameHeaderSize);
  EXPECT_EQ(report["messages"][0]["relative_error"], 0);
  EXPECT_EQ(received().tensors.at(0).second.sizes(), (std::vector<int64_t>{0, 3}));
}

TEST(CodecApplyNames, ManyMessagesComeBackInTheirOrder) {
  const test::TempDir dir;
  TensorFile file;
  for (int i = 999; i >= 0; --i) {
    file.tensors.emplace_back(std::to_string(i), at::full({1}, i, at::kFloat));
  }
  write_safetensors(dir / "in.safetensors", file);
  const auto result = test::run_process(
      STRAIT_PROGRAM,
      {"codec", "apply", "--codec", "none", "--in", dir / "in.safetensors", "--out", dir / "out.safetensors"});
  ASSERT_EQ(result.status, 0) << result.err;
  const TensorFile out = read_safetensors(dir / "out.safetensors");
  ASSERT_EQ(out.tensors.size(), 1000U);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(out.tensors[i].first, std::to_string(i));
    EXPECT_EQ(out.tensors[i].second.item<float>(), static_cast<float>(i));
  }
}

TEST(CodecApplyNames, AreNumbersWithoutNoughtsBeforeThem) {
  const test::TempDir dir;
  for (const std::string name : {"00", "-0", "0x0", " 0", "", "18446744073709551616", "a\u009b\n"}) {
    write_safetensors(dir / "in.safetensors", {{{name, at::zeros({1})}}, {}});
    const auto result =
        test::run_process(STRAIT_PROGRAM, {"codec", "apply", "--codec", "none", "--in", dir / "in.safetensors",
                                           "--out", dir / "out.safetensors"});
    EXPECT_EQ(result.status, 2) << name;
    EXPECT_THAT(result.err,
                testing::HasSubstr("expected tensors named \"0\", \"1\", ... without a gap; found \""));
    EXPECT_EQ(result.err.find("\u009b"), std::string::npos);
  }
}

std::vector<std::string> all_samples() {
  std::vector<std::string> specs;
  for (const auto& info : codec_list()) specs.insert(specs.end(), info.samples.begin(), info.samples.end());
  return specs;
}

INSTANTIATE_TEST_SUITE_P(EveryCodec, CodecApply, testing::ValuesIn(all_samples()));

}  // namespace
}  // namespace strait
