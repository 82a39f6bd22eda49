#include "strait/config/kinds.h"

#include <fmt/format.h>

#include "strait/base/kinds.h"
#include "strait/config/toml.h"
#include "strait/data/kinds.h"
#include "strait/train/learning_rate.h"
#include "strait/train/optimizer.h"

namespace strait {

std::vector<KindChoice> all_kinds() {
  std::vector<KindChoice> all;
  const auto add = [&](const std::string& table, std::string& (*field)(Config&), const std::string& kind) {
    Config config;
    field(config) = kind;
    all.push_back({table, fmt::format("{}kind = {}", table, toml_string(kind)), std::move(config)});
  };
  add(
      "model.", [](Config& c) -> std::string& { return c.model.kind; }, "gpt2");
  for (const auto& kind : names_of(data_kinds())) {
    add(
        "data.", [](Config& c) -> std::string& { return c.data.kind; }, kind);
  }
  for (const auto& kind : names_of(optimizer_kinds())) {
    add(
        "train.optimizer.", [](Config& c) -> std::string& { return c.train.optimizer.kind; }, kind);
  }
  for (const auto& kind : names_of(rate_schedule_kinds())) {
    add(
        "train.schedule.", [](Config& c) -> std::string& { return c.train.schedule.kind; }, kind);
  }
  return all;
}

}  // namespace strait
