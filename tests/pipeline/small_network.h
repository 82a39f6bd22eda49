#pragma once

#include <torch/torch.h>

#include <string>
#include <vector>

#include "strait/pipeline/executor.h"
#include "strait/transport/loopback.h"

namespace strait::test {

/// Four linear layers with a tanh after each but the last, cut after every layer.
struct Network {
  std::vector<torch::nn::Linear> layers;

  explicit Network(uint64_t seed) {
    torch::manual_seed(seed);
    const std::vector<int64_t> sizes = {6, 16, 12, 8, 5};
    for (size_t i = 0; i + 1 < sizes.size(); ++i) layers.emplace_back(sizes[i], sizes[i + 1]);
  }

  at::Tensor layer(size_t i, const at::Tensor& x) {
    const at::Tensor y = layers[i](x);
    return i + 1 < layers.size() ? y.tanh() : y;
  }

  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> all;
    for (const auto& layer : layers) {
      for (const auto& parameter : layer->parameters()) all.push_back(parameter.grad().clone());
    }
    return all;
  }

  void zero_grad() {
    for (auto& layer : layers) layer->zero_grad();
  }
};

inline Loss cross_entropy(const at::Tensor& output, const at::Tensor& targets) {
  return {torch::nn::functional::cross_entropy(output, targets),
          output.argmax(1).eq(targets).sum().item<int64_t>(), targets.size(0)};
}

struct Fixture {
  explicit Fixture(uint64_t seed = 1) : network(seed) {}

  /// All stages in this process.
  Executor executor(const PipelineOptions& options, const CompressionOptions& compression, int64_t batch_size) {
    return Executor(setup(options, compression, batch_size, 0, 1), transport);
  }

  /// A stage per rank, or all of them on one.
  Executor::Setup setup(const PipelineOptions& options, const CompressionOptions& compression,
                        int64_t batch_size, int rank, int ranks) {
    const auto is_here = [&](size_t stage) { return ranks == 1 || static_cast<int>(stage) == rank; };
    Executor::Setup setup;
    setup.stage_count = static_cast<int>(network.layers.size());
    setup.rank = rank;
    setup.ranks = ranks;
    setup.schedule = options.schedule;
    setup.micro_batches = options.micro_batches;
    setup.stages_per_rank = options.stages_per_rank;
    setup.batch_size = batch_size;
    setup.seed = 9;
    for (size_t i = 0; i < network.layers.size(); ++i) {
      const bool last = i + 1 == network.layers.size();
      if (is_here(i)) {
        setup.stages.try_emplace(
            static_cast<int>(i), [this, i](const at::Tensor& x) { return network.layer(i, x); },
            last ? LossFunction(cross_entropy) : LossFunction(), i == 0);
      }
      if (last) continue;
      const std::string cut = "cut" + std::to_string(i);
      setup.boundaries.emplace_back(
          cut, static_cast<uint16_t>(i), links_of(compression, cut), compression.diagnostics,
          BoundaryEndpoints::Local{.upstream = is_here(i), .downstream = is_here(i + 1)});
      setup.sample_shapes.push_back({network.layers[i]->options.out_features()});
    }
    return setup;
  }

  static StepInput batch(int64_t rows, uint64_t step = 0) {
    torch::manual_seed(100 + step);
    StepInput input{{torch::randn({rows, 6})}, torch::randint(5, {rows}), step, rows};
    // Every sample comes again after four batches.
    for (int64_t row = 0; row < rows; ++row) input.ids.push_back(static_cast<int64_t>(step % 4) * rows + row);
    return input;
  }

  Network network;
  Loopback transport;
};

}  // namespace strait::test
