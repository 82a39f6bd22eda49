#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/sample_form.h"
#include "strait/base/settings.h"
#include "strait/models/model.h"
#include "strait/models/published.h"

namespace strait {

/// What does not go together with a setting; the text reads on from the key.
struct SettingComplaint {
  std::string key;   ///< without the table
  std::string text;  ///< such as `expected a divisor of model.width, found 5`
};

/// A kind of network: what configurations can say of it, and how it is made of that.
struct ModelKind {
  std::string name;  ///< in model.kind

  /// Whether a sample is tokens, [T] int64; otherwise it is numbers, float32. A kind that reads tokens has the
  /// keys `context`, the most tokens of a sample, and `vocab`, a number above every token.
  bool reads_tokens = false;

  std::vector<std::string> cuts;  ///< where nothing sets them

  /// Besides `kind` and `cuts`. model_kinds() adds those that every kind has (bottleneck_key()).
  std::vector<SettingKey> keys;

  /// What no single key can know: how settings go together, and with the samples as far as they are known.
  std::optional<SettingComplaint> (*complaint)(const Settings&, const SampleForm&) = nullptr;

  /// Reads what a config.json of Hugging Face says of such a network. None: there are no such files.
  void (*published)(PublishedConfig&) = nullptr;

  /// What such a file says of the network, for transformers to read the weights; a member that is null is one
  /// that it must not have, and null in its place means that transformers has no class for these settings.
  /// None: for no settings.
  nlohmann::json (*publish)(const Settings&) = nullptr;

  /// How many numbers the network's parameters hold, those of a tie each by themselves. As a double, because
  /// settings may ask for more than any integer counts.
  double (*parameters)(const Settings&, const SampleForm&) = nullptr;

  /// Builds the network, about whose settings and samples there is no complaint. What the keys of every kind
  /// ask for, make_model() adds.
  Model (*make)(const Settings&, const SampleForm&) = nullptr;
};

/// The kinds of model_list.def, in its order.
const std::vector<ModelKind>& model_kinds();

/// The kind of that name. Throws InputError that lists the names.
const ModelKind& model_kind(std::string_view name);

/// The key `layers` of a kind whose settings say how many there are, which is bounded because each takes some
/// memory, however narrow it is.
SettingKey layers_key(int64_t initial, const std::string& meaning);

/// See ModelKind::publish; null also where keys of every kind add to the network.
nlohmann::json publish(const ModelOptions& options);

/// The file that the key `init` names; empty where there is none, or no such key.
std::string initial_file(const ModelOptions& options);

}  // namespace strait
