#include "strait/train/precision.h"

#include "strait/base/error.h"
#include "strait/models/bfloat16.h"

namespace strait {

void check_precision(const std::string& precision, c10::Device device) {
  if (precision == "fp32" || has_bfloat16(device)) return;
  throw InputError(
      "train.precision: expected \"fp32\", because the device {} does not have bfloat16, found \"{}\"",
      device.str(), precision);
}

Stage::Forward forward_of(const Model& model, const LayerRange& range, const std::string& precision,
                          c10::DeviceType device) {
  if (precision == "fp32") {
    return [&model, range](const at::Tensor& x) { return model.forward(x, range.begin, range.end); };
  }
  return [&model, range, device](const at::Tensor& x) {
    const Bfloat16Scope scope(device);
    const at::Tensor output = model.forward(x, range.begin, range.end);
    return range.end < model.layers.size() ? output.to(at::kFloat) : output;
  };
}

}  // namespace strait
