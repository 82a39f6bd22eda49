#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strait/base/settings.h"

namespace strait {

/// The [model] table of a configuration.
struct ModelOptions {
  /// The kind's own cuts and settings, but for those that are given. Throws InputError for a kind that is not
  /// in the list.
  explicit ModelOptions(std::string_view kind, const SettingList& others = {});

  /// Those of "resnet18".
  ModelOptions() : ModelOptions("resnet18") {}

  std::string kind;               ///< one of model_kinds()
  std::vector<std::string> cuts;  ///< a stage ends after each of these layers
  Settings settings;              ///< the keys that the kind has of its own

  bool operator==(const ModelOptions&) const = default;
};

}  // namespace strait
