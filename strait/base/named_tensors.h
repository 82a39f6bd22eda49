#pragma once

#include <string>
#include <utility>
#include <vector>

namespace at {
class Tensor;
}  // namespace at

namespace strait {

/// Tensors with their names, in an order of the owner's.
using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

}  // namespace strait
