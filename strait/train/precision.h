#pragma once

#include <string>

#include "strait/models/model.h"
#include "strait/pipeline/stage.h"

namespace strait {

/// Throws InputError where the device does not have it (train.precision).
void check_precision(const std::string& precision, c10::Device device);

/// The forward pass of the layers of a stage; refers to the model in place. What it gives is float32, but for
/// the network's last layer: its output, which may be large, is for the loss to take as it is.
StageForward forward_of(const Model& model, const LayerRange& range, const std::string& precision,
                        c10::DeviceType device);

}  // namespace strait
