#include "strait/config/kinds.h"

#include <fmt/format.h>

#include "strait/base/kinds.h"
#include "strait/base/literal.h"
#include "strait/data/kinds.h"
#include "strait/models/kinds.h"
#include "strait/train/learning_rate.h"
#include "strait/train/optimizer.h"

namespace strait {

std::vector<KindChoice> all_kinds() {
  std::vector<KindChoice> all;
  const auto add = [&](const std::string& table, std::string& (*field)(Config&),
                       const std::vector<std::string>& kinds) {
    for (const auto& kind : kinds) {
      Config config;
      field(config) = kind;
      set_defaults_of_kinds(config);
      all.push_back({table, kind, std::move(config)});
    }
  };
  add(
      "model.", [](Config& c) -> std::string& { return c.model.kind; }, names_of(model_kinds()));
  add(
      "data.", [](Config& c) -> std::string& { return c.data.kind; }, names_of(data_kinds()));
  add(
      "train.optimizer.", [](Config& c) -> std::string& { return c.train.optimizer.kind; },
      names_of(optimizer_kinds()));
  add(
      "train.schedule.", [](Config& c) -> std::string& { return c.train.schedule.kind; },
      names_of(rate_schedule_kinds()));
  return all;
}

std::string alternatives(std::span<const std::string> names) {
  std::vector<std::string> quoted;
  for (const auto& name : names) quoted.push_back(toml_string(name));
  return either_of(quoted);
}

std::string setting_of(std::string_view table, std::span<const std::string> kinds) {
  return fmt::format("{}kind = {}", table, alternatives(kinds));
}

}  // namespace strait
