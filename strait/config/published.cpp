#include "strait/config/published.h"

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/models/kinds.h"
#include "strait/models/published.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

fs::path config_beside(const fs::path& weights) { return weights.parent_path() / "config.json"; }

/// What the file says; nothing where there is none, or the kind knows of none.
std::vector<PublishedSetting> published_beside(const fs::path& weights, const ModelKind& kind) {
  const auto path = config_beside(weights);
  if (kind.published == nullptr || !has_file(path)) return {};
  const auto root = parse_json(read_whole(path, kJsonBytesMost), path.string());
  PublishedConfig file(root, path.string(), kind.keys);
  kind.published(file);
  return file.settings();
}

bool fits(const SettingValue& own, const PublishedSetting& said) {
  switch (said.decides) {
    case Decides::exactly:
      return own == said.value;
    case Decides::at_most:
      return own <= said.value;
    case Decides::nothing:
      break;
  }
  return true;
}

}  // namespace

fs::path weights_at(const fs::path& path) {
  if (!has_folder(path)) return path;
  for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
    if (is_there(path / name)) return path / name;
  }
  throw InputError("{}: has no weights, expected model.safetensors or model.safetensors.index.json",
                   path.string());
}

std::optional<fs::path> find_initial(const std::string& init, const std::string& data_root) {
  if (init.empty()) return std::nullopt;
  for (const auto& place : {fs::path(init), fs::path(data_root) / init}) {
    if (is_there(place)) return weights_at(place);
  }
  return std::nullopt;
}

void take_published(ModelOptions& model, const fs::path& weights) {
  for (const auto& said : published_beside(weights, model_kind(model.kind))) {
    const bool is_bound = said.decides == Decides::at_most && model.settings.at(said.key) <= said.value;
    if (!is_bound) model.settings.set(said.key, said.value);
  }
}

void check_published(const Config& config, const fs::path& weights) {
  for (const auto& said : published_beside(weights, model_kind(config.model.kind))) {
    const SettingValue& own = config.model.settings.at(said.key);
    if (fits(own, said)) continue;
    throw InputError("{}: {}: expected model.{} {} {}, found {}", config_beside(weights).string(), said.place,
                     said.key, said.decides == Decides::at_most ? "at most" : "=", to_json_text(said.value),
                     to_json_text(own));
  }
}

}  // namespace strait
