#include "strait/models/kinds.h"

#include "strait/base/error.h"
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

ModelOptions::ModelOptions(std::string_view kind_name, const SettingList& others) : kind(kind_name) {
  const ModelKind& known = model_kind(kind);
  cuts = known.cuts;
  settings = Settings(known.keys);
  for (const auto& [name, value] : others) settings.set(name, value);
}

std::string initial_file(const ModelOptions& options) {
  return options.settings.has("init") ? options.settings.text("init") : "";
}

Model make_model(const ModelOptions& options, const SampleForm& samples) {
  const ModelKind& kind = model_kind(options.kind);
  if (const auto complaint = kind.complaint(options.settings, samples)) {
    throw InputError("model.{}: {}", complaint->key, complaint->text);
  }
  Model model = kind.make(options.settings, samples);
  const int64_t channels = options.settings.integer("bottleneck");
  if (channels > 0) add_bottlenecks(model, options.cuts, channels);
  return model;
}

}  // namespace strait
