#include "strait/config/model_and_data.h"

#include <ATen/Context.h>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/checkpoint/model_file.h"
#include "strait/config/published.h"
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

}  // namespace

Model make_network(const Config& config, int processes) {
  configure_runtime(config.train.threads, processes);
  at::manual_seed(config.seed);
  return make_model(config.model, data_kind(config.data.kind).form(config.data));
}

std::filesystem::path initial_weights(const Config& config) {
  const std::string init = initial_file(config.model);
  if (init.empty()) return init;
  const auto place = find_initial(init, config.data.root);
  if (!place) throw InputError("model.init: no file {}, here or below data.root{}", init, advice_on(init));
  check_published(config, *place);
  return *place;
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
