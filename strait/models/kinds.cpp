#include "strait/models/kinds.h"

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/host.h"
#include "strait/base/kinds.h"
#include "strait/models/bottleneck.h"

namespace strait {

#define STRAIT_MODEL(name) ModelKind name##_kind();
#include "strait/models/model_list.def"
#undef STRAIT_MODEL

const std::vector<ModelKind>& model_kinds() {
  static const std::vector<ModelKind> kKinds = [] {
    std::vector<ModelKind> kinds = {
#define STRAIT_MODEL(name) name##_kind(),
#include "strait/models/model_list.def"
#undef STRAIT_MODEL
    };
    for (ModelKind& kind : kinds) kind.keys.push_back(bottleneck_key());
    return kinds;
  }();
  return kKinds;
}

const ModelKind& model_kind(std::string_view name) { return find_kind(model_kinds(), name, "model.kind"); }

SettingKey layers_key(int64_t initial, const std::string& meaning) {
  return {"layers", initial, from_to(1, 10'000), meaning};
}

ModelOptions::ModelOptions(std::string_view kind_name, const SettingList& others) : kind(kind_name) {
  const ModelKind& known = model_kind(kind);
  cuts = known.cuts;
  settings = Settings(known.keys);
  for (const auto& [name, value] : others) settings.set(name, value);
}

namespace {

/// What does not fit would otherwise be drawn until the system ends the process.
void expect_room(const ModelKind& kind, const Settings& settings, const SampleForm& samples) {
  const double parameters = kind.parameters(settings, samples);
  const double bytes = parameters * sizeof(float);
  const auto free = static_cast<double>(free_memory());
  if (bytes <= free) return;
  throw InputError("model: a {} of these keys has {:.3g} parameters, which take {:.3g} GB; {:.3g} GB are free",
                   kind.name, parameters, bytes / 1e9, free / 1e9);
}

}  // namespace

nlohmann::json publish(const ModelOptions& options) {
  const ModelKind& kind = model_kind(options.kind);
  if (kind.publish == nullptr || options.settings.integer("bottleneck") > 0) return {};
  return kind.publish(options.settings);
}

std::string initial_file(const ModelOptions& options) {
  return options.settings.has("init") ? options.settings.text("init") : "";
}

Model make_model(const ModelOptions& options, const SampleForm& samples) {
  const ModelKind& kind = model_kind(options.kind);
  if (const auto complaint = kind.complaint(options.settings, samples)) {
    throw InputError("model.{}: {}", complaint->key, complaint->text);
  }
  expect_room(kind, options.settings, samples);
  Model model = kind.make(options.settings, samples);
  const int64_t channels = options.settings.integer("bottleneck");
  if (channels > 0) add_bottlenecks(model, options.cuts, channels);
  return model;
}

}  // namespace strait
