#pragma once

#include "strait/models/model.h"

namespace strait {

/// ResNet-18 for pictures of some 32x32 pixels (He et al. 2016, with the 3x3 stem of CIFAR implementations):
/// input [B, C, H, W] with `picture` = {C, H, W}, output [B, classes]. Groups of two basic blocks with width,
/// 2, 4 and 8 times width channels, of which the last three halve the sides; then the mean over the picture.
/// Layers: stem, layer1.0, layer1.1, ..., layer4.1, head.
Model make_resnet18(int64_t width, int64_t classes, const std::vector<int64_t>& picture = {3, 32, 32});

}  // namespace strait
