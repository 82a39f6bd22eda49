// A pipeline whose stages are on the fake device against the same on the CPU.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "strait/codecs/device_order.h"
#include "strait/pipeline/nccl_transport.h"
#include "strait/train/rank_statistics.h"
#include "tests/device/devices.h"
#include "tests/device/fake_nccl.h"
#include "tests/pipeline/own_network.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

class PipelineOnDevice : public testing::TestWithParam<std::pair<std::string, std::string>> {
 protected:
  // Autograd makes its threads for the devices that there are when it is first used.
  PipelineOnDevice() { test::device(); }
};

/// A stage of a matrix product and what follows it. Modules cannot be moved to such a device.
StageModule product(const at::Tensor& weight, at::Tensor (*follow)(const at::Tensor&)) {
  return {[weight, follow](const at::Tensor& x) { return follow(at::matmul(x, weight)); }, {weight}};
}

/// A pipeline of these weights on their device.
PipelineSetup setup_with(at::Device device, const std::string& codec, const std::string& feedback,
                         const std::vector<at::Tensor>& weights) {
  PipelineSetup setup;
  setup.stages = {product(weights[0], at::tanh), product(weights[1], at::relu), product(weights[2], at::tanh),
                  product(weights[3], at::alias)};
  setup.boundaries = test::own_boundaries(codec, feedback);
  for (Boundary& boundary : setup.boundaries) boundary.diagnostics = 1;
  setup.loss = test::mean_square;
  setup.device = device;
  setup.micro_batches = 3;
  return setup;
}

/// The same of new weights, the same in every call.
PipelineSetup setup_on(at::Device device, const std::string& codec, const std::string& feedback,
                       std::vector<at::Tensor>& weights) {
  torch::manual_seed(1);
  for (const auto& shape : {std::pair(6, 16), std::pair(16, 12), std::pair(12, 8), std::pair(8, 5)}) {
    weights.push_back(torch::randn({shape.first, shape.second}).to(device).requires_grad_(true));
  }
  return setup_with(device, codec, feedback, weights);
}

/// The parameters after three steps on this device, on the CPU.
std::vector<at::Tensor> trained(at::Device device, const std::string& codec, const std::string& feedback) {
  std::vector<at::Tensor> weights;
  Pipeline pipeline(setup_on(device, codec, feedback, weights));
  torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1));
  for (uint64_t step = 0; step < 3; ++step) {
    const test::OwnBatch batch(step);
    optimizer.zero_grad();
    pipeline.train(batch.inputs.to(device), batch.targets.to(device));
    optimizer.step();
  }
  std::vector<at::Tensor> parameters;
  for (const auto& weight : weights) parameters.push_back(weight.detach().cpu());
  return parameters;
}

TEST_P(PipelineOnDevice, TrainsToTheBitsOfTheCpu) {
  const auto& [codec, feedback] = GetParam();
  fake::take_races();
  const auto expected = trained(at::kCPU, codec, feedback);
  const auto parameters = trained(fake::device(), codec, feedback);
  ASSERT_EQ(parameters.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(at::equal(parameters[i], expected[i])) << i;
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

/// Reads state as a checkpoint does, and replaces it as a run does that resumes from there.
struct ByHost : StateVisitor {
  void tensor(std::string_view /*name*/, at::Tensor& value) override {
    if (value.defined()) value = value.cpu();
  }
};

/// Reads state as a checkpoint does.
struct Reader : StateVisitor {
  void tensor(std::string_view /*name*/, at::Tensor& value) override {
    if (value.defined()) read.push_back(value.cpu());
  }
  std::vector<at::Tensor> read;
};

/// What ranks have after their steps, one entry a rank.
struct OfRanks {
  std::vector<at::Tensor> parameters;
  std::vector<std::map<std::string, uint64_t>> state_sums;
  std::vector<double> losses = {};  ///< of evaluation in the mode live, of the last rank
};

/// A group whose transports leave payloads on the device, by what stands in NCCL's place.
class WithNccl : public Group {
 public:
  WithNccl(Group& group, at::Device device) : group_(group), device_(device) {}

  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  std::vector<std::string> gather(const std::string& mine) override { return group_.gather(mine); }
  void send(const at::Tensor& tensor, int to, const std::string& what) override {
    group_.send(tensor, to, what);
  }
  void receive(at::Tensor& tensor, int from, const std::string& what) override {
    group_.receive(tensor, from, what);
  }
  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override {
    return over_nccl(group_.make_transport(peers, names), group_, peers, names,
                     {device_, std::chrono::seconds(20)}, fake::nccl);
  }
  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override {
    return group_.make_control(std::move(peers), what, std::move(handle));
  }
  void fail(const Failure& failure) override { group_.fail(failure); }

 private:
  Group& group_;
  at::Device device_;
};

/// Three steps of ranks with a stage each, which encode and decode beside their stages; between them evaluation
/// that moves held state, and state that is read or replaced.
OfRanks trained_by_ranks(at::Device device, const std::string& codec, const std::string& feedback,
                         bool by_nccl = false) {
  std::vector<at::Tensor> first;
  setup_on(at::kCPU, codec, feedback, first);
  OfRanks all{std::vector<at::Tensor>(first.size()),
              std::vector<std::map<std::string, uint64_t>>(first.size())};
  std::vector<test::OwnBatch> batches;
  for (uint64_t step = 0; step < 3; ++step) batches.emplace_back(step);
  const auto train = [&](Group& group) {
    const auto own = static_cast<size_t>(group.rank());
    std::vector<at::Tensor> weights;
    for (const auto& weight : first)
      weights.push_back(weight.detach().to(device, at::kFloat, false, true).requires_grad_());
    const std::shared_ptr<Group> borrowed =
        by_nccl ? std::make_shared<WithNccl>(group, device) : std::shared_ptr<Group>(&group, [](Group*) {});
    Pipeline pipeline(setup_with(device, codec, feedback, weights), borrowed);
    torch::optim::SGD optimizer(pipeline.parameters(), torch::optim::SGDOptions(0.1));
    for (const auto& batch : batches) {
      optimizer.zero_grad();
      pipeline.train(own == 0 ? batch.inputs.to(device) : at::Tensor(),
                     own + 1 == first.size() ? batch.targets.to(device) : at::Tensor(), batch.ids);
      optimizer.step();
      HeldState held(pipeline.boundaries());
      for (int times = 0; times < 2; ++times) {
        const auto report =
            pipeline.evaluate({{own == 0 ? batch.inputs.to(device) : at::Tensor()},
                               own + 1 == first.size() ? batch.targets.to(device) : at::Tensor(),
                               batch.ids},
                              EvaluationMode::live);
        if (report.loss) all.losses.push_back(*report.loss);
      }
      held.put_back();
      Reader reader;
      pipeline.visit_state(reader);
      if (&batch != &batches[1]) continue;
      ByHost by_host;
      pipeline.visit_state(by_host);
    }
    pipeline.train(own == 0 ? batches[0].inputs.to(device) : at::Tensor(),
                   own + 1 == first.size() ? batches[0].targets.to(device) : at::Tensor(), batches[0].ids);
    StateHasher hasher;
    pipeline.visit_state(hasher);
    all.state_sums[own] = hasher.sums;
    all.parameters[own] = weights[own].detach().cpu();
  };
  const auto errors = test::Ranks(static_cast<int>(first.size())).run([&](Group& group) {
    OwnStream(device).run({}, [&] { train(group); });  // as a process has one
  });
  EXPECT_THAT(errors, testing::Each(testing::IsEmpty()));
  return all;
}

TEST_P(PipelineOnDevice, TrainsToTheSameBitsInSeveralRanks) {
  const auto& [codec, feedback] = GetParam();
  fake::take_races();
  const auto expected = trained_by_ranks(at::kCPU, codec, feedback);
  const auto by_device = trained_by_ranks(fake::device(), codec, feedback);
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(by_device.parameters[i], expected.parameters[i])) << i;
  }
  EXPECT_EQ(by_device.state_sums, expected.state_sums);
  EXPECT_EQ(by_device.losses, expected.losses);
  EXPECT_EQ(expected.losses.size(), 6U);
  EXPECT_EQ(expected.state_sums[0].empty(), feedback == "none");
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

TEST_P(PipelineOnDevice, TrainsToTheSameBitsWherePayloadsStayThere) {
  const auto& [codec, feedback] = GetParam();
  fake::take_races();
  fake::take_bytes_to_host();
  const auto expected = trained_by_ranks(fake::device(), codec, feedback);
  const size_t bytes = fake::take_bytes_to_host();
  fake::take_nccl_messages();
  const auto found = trained_by_ranks(fake::device(), codec, feedback, true);
  // Four steps of three micro-batches forward and backward, and six evaluations, over three boundaries.
  constexpr int kMessages = 3 * (4 * 3 * 2 + 6 * 3);
  const bool is_exact = make_codec(codec)->payload_size({{4, 8}}).exact;
  EXPECT_EQ(fake::take_nccl_messages(), is_exact ? kMessages : 0);
  EXPECT_EQ(fake::take_bytes_to_host() < bytes, is_exact);
  for (size_t i = 0; i < expected.parameters.size(); ++i) {
    EXPECT_TRUE(at::equal(found.parameters[i], expected.parameters[i])) << i;
  }
  EXPECT_EQ(found.state_sums, expected.state_sums);
  EXPECT_EQ(found.losses, expected.losses);
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

/// A GPU's products are not the CPU's, bit for bit; those of one process are those of several.
TEST_P(PipelineOnDevice, TrainsThereToTheSameBitsInOneProcessAndInRanks) {
  const auto& [codec, feedback] = GetParam();
  const auto expected = trained(test::device(), codec, feedback);
  const auto parameters = trained_by_ranks(test::device(), codec, feedback).parameters;
  const auto on_cpu = trained(at::kCPU, codec, feedback);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(parameters[i], expected[i])) << i;
    EXPECT_TRUE(at::allclose(on_cpu[i], expected[i], 0.01, 0.01)) << i;
  }
}

/// Wherever in a step the device fails, one line says where that was.
TEST(FailingDevice, IsNamedWithStageOrMessage) {
  const test::OwnBatch batch(0);
  const at::Tensor inputs = batch.inputs.to(fake::device());
  const at::Tensor targets = batch.targets.to(fake::device());
  std::set<std::string> places;
  for (int operations = 0;; operations += 2) {
    std::vector<at::Tensor> weights;
    auto setup = setup_on(fake::device(), "quant:4,scope=sample", "ef", weights);
    setup.micro_batches = 2;
    Pipeline pipeline(std::move(setup));
    fake::fail_after(operations);
    std::string said;
    try {
      pipeline.train(inputs, targets);
    } catch (const std::exception& error) {
      said = error.what();
    }
    if (!fake::has_failed()) break;
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_THAT(said,
                testing::MatchesRegex(
                    "(stage . cannot run on .*|(stage|boundary) .* on fake:0): no memory on the fake device"))
        << "after " << operations;
    places.insert(said);
  }
  const auto has = [&](const std::string& text) {
    return std::ranges::any_of(places,
                               [&](const std::string& place) { return place.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(has("stage 1, forward pass of micro-batch 1"));
  EXPECT_TRUE(has("stage 2, backward pass of micro-batch 0"));
  EXPECT_TRUE(has("activation, micro-batch 1, step 0: codec quant:4,scope=sample, message of ["));
  EXPECT_TRUE(has("gradient, micro-batch 0, step 0: codec quant:4,scope=sample, message of ["));
}

INSTANTIATE_TEST_SUITE_P(All, PipelineOnDevice,
                         testing::Values(std::pair("none", "none"), std::pair("quant:4,scope=sample", "ef"),
                                         std::pair("topk:0.25", "ef21"), std::pair("topk:0.25", "none"),
                                         std::pair("topk:0.25,index=bitmap", "ef")));

}  // namespace
}  // namespace strait
