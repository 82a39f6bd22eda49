// Batches whose inputs have other shapes than those before, such as sentences padded to the longest of their
// batch.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/pipeline/pipeline.h"
#include "tests/support/errors.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using test::message_of;
using testing::Each;
using testing::HasSubstr;

constexpr int64_t kWords = 20;

/// Takes words [B, T] and gives a class for each of them.
struct Sentences {
  Sentences() {
    torch::manual_seed(7);
    table = torch::nn::Embedding(kWords, 8);
    body = torch::nn::Linear(8, 8);
    head = torch::nn::Linear(8, 3);
  }

  std::vector<StageModule> stages() const {
    return {
        table,
        {[body = body](const at::Tensor& x) mutable { return x + body(x).tanh(); }, {body->weight, body->bias}},
        head};
  }

  at::Tensor operator()(const at::Tensor& words) {
    const at::Tensor x = table(words);
    return head(x + body(x).tanh());
  }

  std::vector<at::Tensor> gradients() const {
    return {table->weight.grad(), body->weight.grad(), body->bias.grad(), head->weight.grad(),
            head->bias.grad()};
  }

  torch::nn::Embedding table = nullptr;
  torch::nn::Linear body = nullptr;
  torch::nn::Linear head = nullptr;
};

at::Tensor loss_of(const at::Tensor& output, const at::Tensor& targets) {
  return torch::nn::functional::cross_entropy(output.flatten(0, 1), targets.flatten());
}

PipelineSetup setup_of(const Sentences& network, const std::string& codec, const std::string& feedback) {
  PipelineSetup setup;
  setup.stages = network.stages();
  const auto link = make_link(codec, feedback);
  setup.boundaries = {Boundary("table", link, link), Boundary("body", link, link)};
  setup.loss = loss_of;
  return setup;
}

struct Batch {
  at::Tensor words;
  at::Tensor targets;
};

/// Of the given lengths.
std::vector<Batch> batches(const std::vector<int64_t>& lengths) {
  torch::manual_seed(9);
  std::vector<Batch> all;
  for (const int64_t length : lengths) {
    all.push_back(
        {torch::randint(0, kWords, {6, length}, at::kLong), torch::randint(0, 3, {6, length}, at::kLong)});
  }
  return all;
}

TEST(VaryingShapes, GiveTheGradientsOfTheUnsplitNetwork) {
  Sentences split;
  Sentences whole;
  Pipeline pipeline(setup_of(split, "none", "none"));
  for (const auto& [words, targets] : batches({5, 9, 5, 2})) {
    const StepReport report = pipeline.train(words, targets);
    const at::Tensor loss = loss_of(whole(words), targets);
    loss.backward();
    EXPECT_EQ(report.loss, loss.item<double>());
    EXPECT_EQ(report.traffic.raw_bytes, 4U * 6 * static_cast<uint64_t>(words.size(1)) * 8 * sizeof(float));
    EXPECT_EQ(pipeline.predict({words}).at(0).sizes(), (std::vector<int64_t>{6, words.size(1), 3}));
  }
  const auto theirs = whole.gradients();
  for (size_t i = 0; i < theirs.size(); ++i) EXPECT_TRUE(at::equal(split.gradients()[i], theirs[i])) << i;
}

TEST(VaryingShapes, FeedbackKeepsRowsOfOne) {
  Sentences network;
  Pipeline pipeline(setup_of(network, "topk:0.25", "ef"));
  const auto all = batches({5, 9, 5});
  pipeline.train(all[0].words, all[0].targets);
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(
        message_of<InputError>([&] { pipeline.train(all[1].words, all[1].targets); }),
        "boundary table: its feedback keeps rows of shape [5, 8], found [9, 8]; expected batches of one shape");
  }
  pipeline.train(all[2].words, all[2].targets);
}

/// What each of three processes throws in training; `gives` says which batches' inputs a process has.
std::vector<std::string> errors_of(std::vector<Sentences>& networks, const std::vector<Batch>& all,
                                   const std::function<bool(int rank, size_t step)>& gives) {
  return test::Ranks(3, std::chrono::seconds(10)).run([&](Group& group) {
    const Sentences& network = networks[static_cast<size_t>(group.rank())];
    Pipeline pipeline(setup_of(network, "quant:4,scope=sample", "none"), {&group, [](Group*) {}});
    for (size_t step = 0; step < all.size(); ++step) {
      pipeline.train(gives(group.rank(), step) ? all[step].words : at::Tensor(), all[step].targets);
    }
  });
}

TEST(VaryingShapes, SeveralProcessesGiveTheBitsOfOne) {
  const auto all = batches({5, 9, 5, 2, 9});
  Sentences alone;
  Pipeline pipeline(setup_of(alone, "quant:4,scope=sample", "none"));
  for (const auto& [words, targets] : all) pipeline.train(words, targets);
  std::vector<Sentences> networks(3);
  ASSERT_THAT(errors_of(networks, all, [](int, size_t) { return true; }), Each(""));
  const std::vector<size_t> stage_of = {0, 1, 1, 2, 2};
  for (size_t i = 0; i < stage_of.size(); ++i)
    EXPECT_TRUE(at::equal(networks[stage_of[i]].gradients()[i], alone.gradients()[i])) << i;
}

TEST(VaryingShapes, ExpectInputsInEveryProcess) {
  std::vector<Sentences> networks(3);
  const auto all = batches({5, 5, 9});
  EXPECT_THAT(
      errors_of(networks, all, [](int rank, size_t) { return rank == 0; }),
      Each(HasSubstr("a batch with inputs of other shapes than the one before: expected inputs in every "
                     "process from the first batch on, or one shape")));
}

}  // namespace
}  // namespace strait
