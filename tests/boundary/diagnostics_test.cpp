#include "strait/boundary/diagnostics.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "strait/boundary/channel_endpoints.h"

namespace strait {
namespace {

MessageContext context(uint64_t step, size_t first_row = 0) { return {.step = step, .first_row = first_row}; }

TEST(Diagnostics, MeasuresWhatTheDefinitionsSay) {
  at::manual_seed(1);
  DiagnosticsRecorder recorder(1);
  const at::Tensor a = at::randn({4, 50}).relu();
  const at::Tensor b = at::randn({4, 50}).relu();
  const at::Tensor seen = a * 0.5;
  recorder.add(a, context(0), {.indices = {}, .received = seen, .residual = {}});
  recorder.add(b, context(1), {.indices = {}, .received = b, .residual = {}});
  const Diagnostics all = recorder.measured().value();
  const at::Tensor both = at::cat({a, b});
  EXPECT_EQ(all.messages, 2U);
  EXPECT_DOUBLE_EQ(all.zeros, both.eq(0).sum().item<double>() / 400);
  EXPECT_NEAR(all.relative_error, 0.5 * a.norm().item<double>() / both.norm().item<double>(), 1e-6);
  const double squares = both.square().sum().item<double>();
  EXPECT_NEAR(all.gain, ((a * seen).sum() + (b * b).sum()).item<double>() / squares, 1e-6);
  EXPECT_NEAR(all.mean_error, (a - seen).sum().item<double>() / std::sqrt(200 * squares), 1e-6);
  const at::Tensor sorted = std::get<0>(both.flatten().abs().sort());
  EXPECT_NEAR(all.quantiles[1], sorted[359].item<double>(), 0.031 * sorted[359].item<double>());
  EXPECT_NEAR(all.quantiles[2], sorted[395].item<double>(), 0.031 * sorted[395].item<double>());
  EXPECT_EQ(all.quantiles[3], sorted[399].item<double>());
  const at::Tensor cosines = (a * b).sum(1) / (a.norm(2, 1) * b.norm(2, 1));
  EXPECT_NEAR(all.cosine.value(), cosines.mean().item<double>(), 1e-6);
  EXPECT_FALSE(all.residual_norm.has_value());
  EXPECT_EQ(recorder.measured()->messages, 2U) << "until it is reset";
  recorder.reset();
  EXPECT_FALSE(recorder.measured().has_value());
}

TEST(Diagnostics, AMessageOfZerosHasNoErrorAndNoCosine) {
  DiagnosticsRecorder recorder(1);
  recorder.add(at::zeros({2, 3}), context(0), {.indices = {}, .received = at::zeros({2, 3}), .residual = {}});
  recorder.add(at::zeros({2, 3}), context(1), {.indices = {}, .received = at::zeros({2, 3}), .residual = {}});
  const Diagnostics all = recorder.measured().value();
  EXPECT_EQ(all.zeros, 1);
  EXPECT_EQ(all.quantiles, (std::array<double, 4>{0, 0, 0, 0}));
  EXPECT_EQ(all.relative_error, 0);
  EXPECT_EQ(all.gain, 1);
  EXPECT_EQ(all.mean_error, 0);
  EXPECT_FALSE(all.cosine.has_value());
}

TEST(Diagnostics, MeasuresEveryNthStepAgainstTheOneBeforeIt) {
  DiagnosticsRecorder recorder(3);
  const at::Tensor x = at::ones({2, 2});
  for (uint64_t step = 0; step < 7; ++step) {
    EXPECT_EQ(recorder.measures(context(step)), step % 3 == 0);
    // Each step but the last points the other way than the one before.
    recorder.add(step % 2 == 0 ? x : -x, context(step), {.indices = {}, .received = x, .residual = {}});
  }
  const Diagnostics all = recorder.measured().value();
  EXPECT_EQ(all.messages, 3U);
  EXPECT_NEAR(all.cosine.value(), -1, 1e-6);
}

TEST(Diagnostics, MicroBatchesAreComparedRowByRow) {
  DiagnosticsRecorder recorder(1);
  const at::Tensor x = at::randn({4, 5});
  for (uint64_t step = 0; step < 2; ++step) {
    for (int64_t row = 0; row < 4; row += 2) {
      const at::Tensor part = x.narrow(0, row, 2);
      recorder.add(part, context(step, static_cast<size_t>(row)),
                   {.indices = {}, .received = part, .residual = {}});
    }
  }
  EXPECT_NEAR(recorder.measured()->cosine.value(), 1, 1e-6);
}

/// What a sender measures over a few messages of a link.
Diagnostics measured(const std::string& feedback) {
  at::manual_seed(2);
  ChannelSpec spec{.boundary_name = "layer1", .link = make_link("topk:0.25", feedback), .diagnostics = 1};
  ChannelEndpoints channel(spec);
  double error = 0;
  double norm = 0;
  const std::vector<int64_t> ids = {0, 1, 2};
  const at::Tensor previous = at::randn({3, 40});
  for (uint64_t step = 0; step < 4; ++step) {
    const MessageContext message{.step = step, .ids = ids, .previous = &previous};
    const at::Tensor x = at::randn({3, 40});
    const at::Tensor seen = channel.cross(x, message).to(at::kDouble);
    error += (x.to(at::kDouble) - seen).square().sum().item<double>();
    norm += x.to(at::kDouble).square().sum().item<double>();
  }
  const Diagnostics all = channel.sender->diagnostics().value();
  EXPECT_NEAR(all.relative_error, std::sqrt(error / norm), 1e-7) << feedback;
  return all;
}

TEST(Diagnostics, EveryLinkTellsWhatItsReceiverSees) {
  for (const auto& feedback : link_samples()) {
    const Diagnostics all = measured(feedback);
    EXPECT_EQ(all.messages, 4U);
    EXPECT_EQ(all.residual_norm.has_value(), feedback.starts_with("ef") && !feedback.starts_with("ef21"))
        << feedback;
  }
}

}  // namespace
}  // namespace strait
