// Data parallelism: every process has the whole network and a part of the data; after each batch the processes
// average their gradients, which a codec compresses on their way. `data_parallel CODEC [FEEDBACK]`.

#include <strait/pipeline.h>
#include <torch/torch.h>

#include <cstdio>

namespace nn = torch::nn;

int main(int argc, char** argv) try {
  const auto group = strait::join_from_environment();
  torch::manual_seed(7);  // the same weights and data everywhere
  nn::Sequential network(nn::Linear(32, 128), nn::ReLU(), nn::Linear(128, 8));
  const at::Tensor truth = torch::randn({32, 8}) * 0.2;
  const at::Tensor inputs = torch::randn({4096, 32});
  const at::Tensor targets = torch::matmul(inputs, truth).tanh();

  strait::PipelineSetup setup;
  setup.stages = {network};
  setup.loss = [](const at::Tensor& output, const at::Tensor& target) {
    return nn::functional::mse_loss(output, target);
  };
  setup.replicas = group->size();
  setup.replica_link = strait::make_link(argc > 1 ? argv[1] : "topk:0.05", argc > 2 ? argv[2] : "ef");
  strait::Pipeline pipeline(setup, group);
  torch::optim::Adam optimizer(pipeline.parameters(), torch::optim::AdamOptions(0.003));

  const int64_t batch = 256 / group->size();
  strait::StepReport report;
  for (int64_t step = 0; step < 200; ++step) {
    const int64_t first = step * 256 % inputs.size(0) + pipeline.replica() * batch;
    optimizer.zero_grad();
    report = pipeline.gather(pipeline.train(inputs.narrow(0, first, batch), targets.narrow(0, first, batch)));
    optimizer.step();
    if (group->rank() == 0 && step % 50 == 49)
      std::printf("step %3d  loss %.6f\n", static_cast<int>(step) + 1, *report.loss);
  }
  if (group->rank() == 0 && group->size() > 1) {
    std::printf("gradients: %llu of %llu bytes per step\n",
                static_cast<unsigned long long>(report.traffic.wire_bytes),
                static_cast<unsigned long long>(report.traffic.raw_bytes));
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "data_parallel: %s\n", error.what());
  return 1;
}
