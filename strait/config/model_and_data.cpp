#include "strait/config/model_and_data.h"

#include <ATen/Context.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/checkpoint/model_file.h"
#include "strait/data/kinds.h"
#include "strait/data/registry.h"
#include "strait/models/kinds.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

/// How to get a file of weights that is missing, where the program can fetch it.
std::string advice_on(const std::filesystem::path& weights) {
  for (const auto& data : official_data()) {
    for (const auto& file : data.files) {
      if (data.downloads.empty() || !weights.generic_string().ends_with(file.path)) continue;
      return fmt::format("; \"strait data get {}\" fetches {} into data.root", data.name, file.path);
    }
  }
  return "";
}

bool is_same(const nlohmann::json& found, const SettingValue& expected) {
  return std::visit(
      [&](const auto& value) {
        // A number compares with a number of any type, but not with a truth value.
        return found.is_boolean() == std::is_same_v<decltype(value), const bool&> &&
               found == nlohmann::json(value);
      },
      expected);
}

}  // namespace

void check_published(const Config& config, const std::filesystem::path& weights) {
  const auto& kind = model_kind(config.model.kind);
  const auto path = weights.parent_path() / "config.json";
  if (kind.published == nullptr || !has_file(path)) return;
  const auto root = parse_json(read_whole(path, kJsonBytesMost), path.string());
  const SettingList expected = kind.published(config.model.settings);
  for (const auto& setting : expected) {
    const nlohmann::json::json_pointer place(setting.first);
    const auto found = root.contains(place) ? root.at(place) : nlohmann::json();
    const auto fits = [&](const auto& other) {
      return other.first == setting.first && is_same(found, other.second);
    };
    if (found.is_null() || std::ranges::any_of(expected, fits)) continue;
    const auto wanted =
        std::visit([](const auto& value) { return nlohmann::json(value).dump(); }, setting.second);
    throw InputError("{}: {} is {}, expected {} for the network that model describes", path.string(),
                     setting.first.substr(1), found.dump(), wanted);
  }
}

Model make_network(const Config& config, int processes) {
  configure_runtime(config.train.threads, processes);
  at::manual_seed(config.seed);
  return make_model(config.model, data_kind(config.data.kind).form(config.data));
}

std::filesystem::path initial_weights(const Config& config) {
  std::filesystem::path path = initial_file(config.model);
  if (path.empty()) return path;
  for (const auto& place : {path, std::filesystem::path(config.data.root) / path}) {
    if (!is_there(place)) continue;
    check_published(config, place);
    return place;
  }
  throw InputError("model.init: no file {}, here or below data.root{}", path.string(), advice_on(path));
}

Model load_network(const Config& config, const std::filesystem::path& weights) {
  check_published(config, weights);
  Model model = make_network(config);
  load_model(weights, model);
  model.to(device_of(config.train.device));
  return model;
}

DataSplits load_splits(const Config& config) {
  DataSplits data = load_data(config.data);
  if (!model_kind(config.model.kind).reads_tokens) return data;
  const int64_t vocab = config.model.settings.integer("vocab");
  if (data.vocab > vocab) {
    throw InputError("model.vocab: expected at least {}, the tokens of the tokenizer, found {}", data.vocab,
                     vocab);
  }
  return data;
}

}  // namespace strait
