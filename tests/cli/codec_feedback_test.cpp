#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "strait/formats/safetensors.h"
#include "tests/links/pair.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::HasSubstr;

class CodecFeedback : public testing::Test {
 protected:
  test::ProcessResult apply(const std::string& feedback, const TensorFile& file) {
    write_safetensors(dir_ / "in.safetensors", file);
    return test::run_process(STRAIT_PROGRAM,
                             {"codec", "apply", "--codec", "topk:0.2", "--feedback", feedback, "--in",
                              dir_ / "in.safetensors", "--out", dir_ / "out.safetensors", "--json"});
  }

  static TensorFile messages(bool with_ids) {
    at::manual_seed(1);
    TensorFile file;
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t rows = i == 3 ? 2 : 4;
      file.tensors.emplace_back(std::to_string(i), at::randn({rows, 5, 6}));
      if (with_ids) {
        file.tensors.emplace_back("ids." + std::to_string(i), at::arange(rows, at::kLong).add(i % 3 * 2));
      }
    }
    return file;
  }

  test::TempDir dir_;
};

TEST_F(CodecFeedback, TheReceiverSeesWhatTheLinkGives) {
  for (const auto& feedback : link_samples()) {
    const TensorFile file = messages(true);
    const auto result = apply(feedback, file);
    if (make_link("topk:0.2", feedback)->needs_previous()) {
      EXPECT_EQ(result.status, 2);
      EXPECT_THAT(result.err,
                  HasSubstr("--feedback \"" + feedback + "\": expected feedback that needs its message alone"));
      continue;
    }
    ASSERT_EQ(result.status, 0) << result.err;
    const TensorFile received = read_safetensors(dir_ / "out.safetensors");
    ASSERT_EQ(received.tensors.size(), 6U);
    test::Pair pair(feedback, "topk:0.2");
    for (uint64_t i = 0; i < 6; ++i) {
      const at::Tensor& ids = *file.find("ids." + std::to_string(i));
      const at::Tensor seen = pair.send(
          *file.find(std::to_string(i)),
          MessageContext{.step = i, .ids = {ids.data_ptr<int64_t>(), static_cast<size_t>(ids.numel())}});
      EXPECT_TRUE(at::equal(seen, *received.find(std::to_string(i)))) << feedback << " " << i;
    }
  }
}

TEST_F(CodecFeedback, SampleIdsAreAskedForAndChecked) {
  const auto missing = apply("aq-sgd", messages(false));
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err,
              HasSubstr("in.safetensors: tensor \"ids.0\": expected int64 of length 4, the samples of "
                        "message 0, found none"));
  TensorFile file = messages(true);
  file.tensors[1].second = at::zeros({3}, at::kLong);
  EXPECT_THAT(apply("aq-sgd", file).err,
              HasSubstr("tensor \"ids.0\": expected int64 of length 4, found int64 of 1 "
                        "dimensions and 3 elements"));
  file.tensors[1] = {"ids.9", at::zeros({4}, at::kLong)};
  EXPECT_THAT(apply("aq-sgd", file).err, HasSubstr("without a gap; found \"ids.9\" of 6 messages"));
}

}  // namespace
}  // namespace strait
