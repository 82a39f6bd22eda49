#include "strait/train/store_budget.h"

#include <gmock/gmock.h>

#include "strait/base/error.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> kCuts = {"layer1", "layer2", "layer3"};
const std::vector<std::vector<int64_t>> kShapes = {{64, 32, 32}, {128, 16, 16}, {256, 8, 8}};

StoreBudget budget(const StoreOptions& store, int64_t samples = 50000) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "aq-sgd"};
  options.store = store;
  return {options, kCuts, kShapes, samples};
}

std::string complaint(const StoreBudget& store, uint64_t free) {
  return test::error_of<InputError>([&] { store.check_fits(free); });
}

TEST(StoreBudget, TheWholeOfCifar10AtFullWidth) {
  EXPECT_EQ(budget({}).bytes(), 22'937'600'000U);
  EXPECT_EQ(budget({}).describe(),
            "feedback keeps 22.9 GB for 50000 samples, 458752 bytes each, in memory (layer1 13.1 GB in fp32, "
            "layer2 6.6 GB in "
            "fp32, layer3 3.3 "
            "GB in fp32)");
  EXPECT_EQ(budget({"memory", "bf16", ""}).bytes(), 11'468'800'000U);
  EXPECT_EQ(budget({"memory", "quant:8", ""}).bytes(), 50000ULL * (65536 + 32768 + 16384 + 3 * 8));
  EXPECT_EQ(budget({"memory", "quant:4", ""}).bytes(), 50000ULL * (32768 + 16384 + 8192 + 3 * 8));
  EXPECT_EQ(budget({"memory", "quant:2", ""}).bytes(), 50000ULL * (16384 + 8192 + 4096 + 3 * 8));
  EXPECT_THAT(budget({"memory", "quant:2", ""}).describe(),
              HasSubstr("1.4 GB for 50000 samples, 28696 bytes each, in memory"));
}

TEST(StoreBudget, OtherFeedbackKeepsNothing) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "ef21"};
  const StoreBudget none(options, kCuts, kShapes, 50000);
  EXPECT_EQ(none.bytes(), 0U);
  EXPECT_EQ(complaint(none, 0), "");
}

TEST(StoreBudget, CountsTheBoundariesThatKeepSamples) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "ef"};
  options.boundaries = {{"layer2", {.codec = {}, .feedback = "aq-sgd"}, {}}};
  const StoreBudget one(options, kCuts, kShapes, 1000);
  EXPECT_EQ(one.bytes(), 1000U * 32768 * 4);
  EXPECT_THAT(one.describe(), testing::EndsWith("(layer2 131.1 MB in fp32)"));
  options.boundaries.push_back({"layer3", {.codec = {}, .feedback = "aq-sgd,format=quant:8"}, {}});
  options.store.format = "bf16";
  const StoreBudget mixed(options, kCuts, kShapes, 1000);
  EXPECT_EQ(mixed.bytes(), 1000U * (32768 * 2 + 16384 + 8)) << "its own spec comes before the table";
  EXPECT_THAT(mixed.describe(), testing::EndsWith("(layer2 65.5 MB in bf16, layer3 16.4 MB in quant:8)"));
}

TEST(StoreBudget, CountsBothDirections) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "aq-sgd,format=bf16"};
  options.gradients = {"topk:0.1", "ef21,slots=sample,format=quant:4"};
  options.boundaries = {{"layer1", {.codec = {}, .feedback = "none"}, {.codec = {}, .feedback = "none"}},
                        {"layer3", {.codec = {}, .feedback = "ef"}, {}}};
  const StoreBudget both(options, kCuts, kShapes, 1000);
  EXPECT_EQ(both.bytes(), 1000U * (32768 * 2 + 32768 / 2 + 8 + 16384 / 2 + 8));
  EXPECT_THAT(both.describe(),
              testing::EndsWith("(layer2 65.5 MB in bf16, layer2 gradients 16.4 MB in quant:4, "
                                "layer3 gradients 8.2 MB in quant:4)"));
}

TEST(StoreBudget, RefusesWithAdviceThatFits) {
  EXPECT_EQ(complaint(budget({}), 22'937'600'000U), "");
  const std::string message = complaint(budget({}), 12'000'000'000U);
  EXPECT_THAT(message, HasSubstr("22.9 GB for 50000 samples"));
  EXPECT_THAT(message, HasSubstr("but 12.0 GB are free"));
  EXPECT_THAT(message, HasSubstr("compression.store.place = \"file\""));
  EXPECT_THAT(message, HasSubstr("compression.store.format = \"bf16\" (11.5 GB)"));
  EXPECT_THAT(message, HasSubstr("compression.store.format = \"quant:8\" (5.7 GB)"));
  EXPECT_THAT(message, HasSubstr("compression.store.format = \"quant:4\" (2.9 GB)"));
  EXPECT_THAT(message, HasSubstr("compression.store.format = \"quant:2\" (1.4 GB)"));
  EXPECT_THAT(complaint(budget({}), 6'000'000'000U), Not(HasSubstr("bf16")));
  EXPECT_THAT(complaint(budget({"file", "quant:8", ""}), 1), HasSubstr("another compression.store.folder"));
}

TEST(StoreBudget, CountsWhatOtherProcessesKeepOnTheMachine) {
  const auto complaint_beside = [](uint64_t free, uint64_t others) {
    return test::error_of<InputError>([&] { budget({}).check_fits(free, others); });
  };
  EXPECT_EQ(complaint_beside(32'937'600'000U, 10'000'000'000U), "");
  const std::string message = complaint_beside(32'937'599'999U, 10'000'000'000U);
  EXPECT_THAT(message, HasSubstr("22.9 GB for 50000 samples"));
  EXPECT_THAT(message, HasSubstr("), and 10.0 GB in other processes on this machine, but 32.9 GB are free"));
  EXPECT_THAT(message, HasSubstr("\"bf16\" (11.5 GB)")) << "which leaves room for theirs, halved too";
  EXPECT_THAT(complaint_beside(16'000'000'000U, 10'000'000'000U), Not(HasSubstr("bf16")));
}

TEST(StoreBudget, KnowsWhatIsFree) {
  EXPECT_GT(budget({}).free_bytes(), 1'000'000U);
  EXPECT_GT(budget({"file", "fp32", "/tmp"}).free_bytes(), 0U);
}

}  // namespace
}  // namespace strait
