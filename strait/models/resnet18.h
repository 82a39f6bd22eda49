#pragma once

#include "strait/models/model.h"

namespace strait {

/// ResNet-18 for 32x32 pictures (He et al. 2016, with the 3x3 stem of CIFAR implementations): input
/// [B, 3, 32, 32], output [B, classes]. Groups of two basic blocks with width, 2, 4 and 8 times width
/// channels. Layers: stem, layer1.0, layer1.1, ..., layer4.1, head.
Model make_resnet18(int64_t width, int64_t classes);

}  // namespace strait
