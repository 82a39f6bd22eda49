// A network of one's own, with its own loss and loop, over four stages: in one process, or in four that a
// launcher starts. `own_model CODEC [FEEDBACK]` compresses what crosses; `own_model unsplit` trains without
// strait.

#include <strait/pipeline.h>
#include <torch/torch.h>

#include <cstdio>

namespace nn = torch::nn;

/// Points of the plane, of which the class is that of the spiral they lie on.
std::pair<at::Tensor, at::Tensor> spirals(int64_t points) {
  const at::Tensor classes = torch::randint(3, {points});
  const at::Tensor radius = torch::rand({points}) + 0.1;
  const at::Tensor angle = radius * 5 + classes * 2.1 + torch::randn({points}) * 0.1;
  return {torch::stack({radius * angle.cos(), radius * angle.sin()}, 1), classes};
}

at::Tensor smooth_cross_entropy(const at::Tensor& scores, const at::Tensor& classes) {
  return nn::functional::cross_entropy(scores, classes,
                                       nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
}

int main(int argc, char** argv) try {
  const std::string codec = argc > 1 ? argv[1] : "topk:0.3";
  torch::manual_seed(7);
  nn::Sequential stem(nn::Linear(2, 64), nn::Tanh());
  nn::Sequential body(nn::Linear(64, 64), nn::GELU());
  nn::Sequential neck(nn::Linear(64, 32), nn::ReLU());
  nn::Linear head(32, 3);
  const auto [inputs, classes] = spirals(512);

  const auto group = strait::join_from_environment();
  std::vector<strait::Boundary> boundaries;
  for (const char* name : {"stem", "body", "neck"}) {
    const auto link = strait::make_link(codec == "unsplit" ? "none" : codec, argc > 2 ? argv[2] : "none");
    boundaries.emplace_back(name, link, link);
  }
  strait::Pipeline pipeline(
      {.stages = {stem, body, neck, head}, .boundaries = boundaries, .loss = smooth_cross_entropy}, group);
  torch::optim::Adam optimizer(pipeline.parameters(), torch::optim::AdamOptions(0.005));
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    double loss = 0;
    if (codec == "unsplit") {
      const at::Tensor mean =
          smooth_cross_entropy(head(neck->forward(body->forward(stem->forward(inputs)))), classes);
      mean.backward();
      loss = mean.item<double>();
    } else {
      loss = pipeline.gather(pipeline.train(inputs, classes)).loss.value();
    }
    optimizer.step();
    if (group->rank() == 0 && step % 20 == 19) std::printf("step %3d  loss %.17g\n", step + 1, loss);
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "own_model: %s\n", error.what());
  return 1;
}
