#include "strait/models/bottleneck.h"

#include "strait/base/error.h"
#include "strait/kernels/lowrank.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

/// Which dimension of a sample has the channels.
size_t channel_dimension(const std::vector<int64_t>& sample) {
  return sample.size() == 3 ? 0 : sample.size() - 1;
}

/// Maps the channels of every sample, picture element or token by the matrix `weight`, [out, in].
class ChannelMap : public Layer {
 public:
  explicit ChannelMap(at::Tensor weight) : weight_(register_parameter("weight", std::move(weight))) {}

  at::Tensor forward(const at::Tensor& x) override {
    return x.dim() == 4 ? at::conv2d(x, weight_.unsqueeze(2).unsqueeze(3)) : at::linear(x, weight_);
  }

  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) override {
    std::vector<int64_t> shape = sample;
    shape[channel_dimension(sample)] = weight_.size(0);
    return shape;
  }

 private:
  at::Tensor weight_;
};

/// Random orthonormal rows, [rows, length].
at::Tensor orthonormal_rows(int64_t rows, int64_t length) {
  at::Tensor drawn = torch::empty({rows, length}).normal_();
  kernels::orthonormalise(static_cast<size_t>(length),
                          {drawn.data_ptr<float>(), static_cast<size_t>(drawn.numel())});
  return drawn;
}

}  // namespace

SettingKey bottleneck_key() {
  return {"bottleneck", 0, at_least(0),
          "channels of what crosses a cut, between a trained linear map to them and one back; 0: as many as "
          "there are"};
}

void add_bottlenecks(Model& model, const std::vector<std::string>& cuts, int64_t channels) {
  const auto stages = cut_into_stages(model, cuts);
  const auto shapes = boundary_shapes(model, stages);
  std::vector<NamedLayer> layers;
  for (size_t i = 0; i < stages.size(); ++i) {
    const auto part = model.part(stages[i]).layers;
    layers.insert(layers.end(), part.begin(), part.end());
    if (i == cuts.size()) break;
    const int64_t width = shapes[i][channel_dimension(shapes[i])];
    if (channels > width) {
      throw InputError("model.bottleneck: expected at most {}, the channels behind \"{}\", found {}", width,
                       cuts[i], channels);
    }
    if (channels == width) continue;
    const at::Tensor rows = orthonormal_rows(channels, width);
    const at::Tensor columns = rows.t().clone(at::MemoryFormat::Contiguous);
    layers.push_back({cuts[i] + ".encoder", cuts[i] + ".encoder", std::make_shared<ChannelMap>(rows), true});
    layers.push_back({cuts[i] + "-decoder", cuts[i] + ".decoder", std::make_shared<ChannelMap>(columns), true});
  }
  model.layers = std::move(layers);
}

}  // namespace strait
