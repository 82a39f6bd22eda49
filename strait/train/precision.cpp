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

StageForward forward_of(const Model& model, const LayerRange& range, const std::string& precision,
                        c10::DeviceType device) {
  const auto run = [&model, range](const TensorList& x) { return model.run(x, range.begin, range.end); };
  if (precision == "fp32") return run;
  return [&model, range, device, run](const TensorList& x) {
    const Bfloat16Scope scope(device);
    TensorList output = run(x);
    if (range.end < model.layers.size()) output.front() = output.front().to(at::kFloat);
    return output;
  };
}

}  // namespace strait
