#pragma once

#include <string>
#include <vector>

namespace strait {

/// The [model] table of a configuration.
struct ModelOptions {
  std::string kind = "resnet18";
  int width = 64;                                                  ///< channels of the first group
  std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};  ///< a stage ends after each of these layers

  bool operator==(const ModelOptions&) const = default;
};

}  // namespace strait
