#include "strait/models/mlp.h"

#include <functional>
#include <numeric>

#include "strait/models/kinds.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

/// A linear layer on flattened samples, rectified unless it is the last.
class Dense : public Layer {
 public:
  Dense(int64_t in, int64_t out, bool rectified) : rectified_(rectified) {
    const torch::nn::Linear drawn(in, out);
    weight_ = register_parameter("weight", drawn->weight);
    bias_ = register_parameter("bias", drawn->bias);
  }

  at::Tensor forward(const at::Tensor& x) override {
    at::Tensor y = at::linear(x.flatten(1), weight_, bias_);
    return rectified_ ? y.relu_() : y;
  }

  std::vector<int64_t> output_shape(const std::vector<int64_t>& /*sample*/) override {
    return {weight_.size(0)};
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
  bool rectified_;
};

}  // namespace

Model make_mlp(int64_t width, int64_t layers, const std::vector<int64_t>& sample, int64_t outputs) {
  Model model;
  model.sample_shape = sample;
  int64_t in = std::accumulate(sample.begin(), sample.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < layers; ++i) {
    const std::string name = "hidden." + std::to_string(i);
    model.layers.push_back({name, name, std::make_shared<Dense>(in, width, true)});
    in = width;
  }
  model.layers.push_back({"head", "head", std::make_shared<Dense>(in, outputs, false)});
  return model;
}

ModelKind mlp_kind() {
  ModelKind kind;
  kind.name = "mlp";
  kind.cuts = {"hidden.0"};
  kind.keys = {
      {"width", 256, at_least(1), "width of a hidden layer"},
      layers_key(2, "hidden layers"),
      {"init", "", path_text(), "safetensors file of weights to start from; empty: drawn from the seed"}};
  kind.complaint = [](const Settings&, const SampleForm&) { return std::optional<SettingComplaint>(); };
  kind.parameters = [](const Settings& settings, const SampleForm& samples) {
    const auto width = static_cast<double>(settings.integer("width"));
    const auto hidden = static_cast<double>(settings.integer("layers") - 1);
    const auto outputs = static_cast<double>(samples.outputs);
    const double in = std::accumulate(samples.shape.begin(), samples.shape.end(), 1.0, std::multiplies<>());
    return (in + 1) * width + hidden * (width + 1) * width + (width + 1) * outputs;
  };
  kind.make = [](const Settings& settings, const SampleForm& samples) {
    return make_mlp(settings.integer("width"), settings.integer("layers"), samples.shape, samples.outputs);
  };
  return kind;
}

}  // namespace strait
