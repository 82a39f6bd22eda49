#include "strait/models/resnet18.h"

#include <fmt/ranges.h>

#include "strait/base/error.h"
#include "strait/models/kinds.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

namespace nn = torch::nn;

nn::Conv2d convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// With the channels last, as convolutions on a CPU want them: otherwise LibTorch reorders what goes into each
/// one and what comes out of it, which takes a fifth of the time of a step of a narrow network. A tensor that
/// has them last stays as it is.
at::Tensor channels_last(const at::Tensor& x) {
  return x.contiguous(x.device().is_cpu() ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous);
}

class Stem : public Layer {
 public:
  Stem(int64_t channels, int64_t width)
      : conv_(register_module("conv1", convolution(channels, width, 3, 1))),
        norm_(register_module("bn1", nn::BatchNorm2d(width))) {}

  at::Tensor forward(const at::Tensor& x) override { return norm_(conv_(channels_last(x))).relu_(); }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
};

class BasicBlock : public Layer {
 public:
  BasicBlock(int64_t in, int64_t out, int64_t stride)
      : conv1_(register_module("conv1", convolution(in, out, 3, stride))),
        norm1_(register_module("bn1", nn::BatchNorm2d(out))),
        conv2_(register_module("conv2", convolution(out, out, 3, 1))),
        norm2_(register_module("bn2", nn::BatchNorm2d(out))),
        shortcut_(register_module("shortcut", nn::Sequential())) {
    if (stride != 1 || in != out) {
      shortcut_->push_back(convolution(in, out, 1, stride));
      shortcut_->push_back(nn::BatchNorm2d(out));
    }
  }

  at::Tensor forward(const at::Tensor& input) override {
    const at::Tensor x = channels_last(input);
    at::Tensor y = norm2_(conv2_(norm1_(conv1_(x)).relu_()));
    return y.add_(shortcut_->is_empty() ? x : shortcut_->forward(x)).relu_();
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  nn::Sequential shortcut_;
};

class Classifier : public Layer {
 public:
  Classifier(int64_t features, int64_t classes)
      : linear_(register_module("linear", nn::Linear(features, classes))) {}

  at::Tensor forward(const at::Tensor& x) override {
    return linear_(torch::avg_pool2d(x, {x.size(2), x.size(3)}).flatten(1));
  }

 private:
  nn::Linear linear_;
};

}  // namespace

Model make_resnet18(int64_t width, int64_t classes, const std::vector<int64_t>& picture) {
  STRAIT_CHECK(picture.size() == 3, "a picture of {} dimensions", picture.size());
  Model model;
  model.sample_shape = picture;
  model.layers.push_back({"stem", "", std::make_shared<Stem>(picture[0], width)});
  int64_t in = width;
  for (int64_t group = 0; group < 4; ++group) {
    const int64_t out = width << group;
    for (int64_t block = 0; block < 2; ++block) {
      const std::string name = "layer" + std::to_string(group + 1) + "." + std::to_string(block);
      const int64_t stride = group > 0 && block == 0 ? 2 : 1;
      model.layers.push_back({name, name, std::make_shared<BasicBlock>(in, out, stride)});
      in = out;
    }
  }
  model.layers.push_back({"head", "", std::make_shared<Classifier>(in, classes)});
  return model;
}

ModelKind resnet18_kind() {
  ModelKind kind;
  kind.name = "resnet18";
  kind.cuts = {"layer1", "layer2", "layer3"};
  kind.keys = {{"width", 64, at_least(1), "channels of the first group"}};
  kind.complaint = [](const Settings& /*settings*/,
                      const SampleForm& samples) -> std::optional<SettingComplaint> {
    if (samples.shape.empty() || samples.shape.size() == 3) return std::nullopt;
    return SettingComplaint{
        "kind", fmt::format("expected pictures, [channels, rows, columns], found samples of shape [{}]",
                            fmt::join(samples.shape, ", "))};
  };
  kind.parameters = [](const Settings& settings, const SampleForm& samples) {
    const auto width = static_cast<double>(settings.integer("width"));
    const auto stem = 9 * static_cast<double>(samples.shape[0]);
    const auto classes = static_cast<double>(samples.outputs);
    // The groups' convolutions have 36, 128, 512 and 2048 times the square of the width, all norms 150 times
    // it.
    return 2724 * width * width + (stem + 150 + 8 * classes) * width + classes;
  };
  kind.make = [](const Settings& settings, const SampleForm& samples) {
    return make_resnet18(settings.integer("width"), samples.outputs, samples.shape);
  };
  return kind;
}

}  // namespace strait
