#include "strait/config/kinds.h"

#include <fmt/format.h>

#include "strait/config/toml.h"
#include "strait/data/kinds.h"

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
  for (const auto& kind : data_kind_names()) {
    add(
        "data.", [](Config& c) -> std::string& { return c.data.kind; }, kind);
  }
  for (const char* kind : {"sgd", "adamw"}) {
    add(
        "train.optimizer.", [](Config& c) -> std::string& { return c.train.optimizer.kind; }, kind);
  }
  for (const char* kind : {"cosine", "linear"}) {
    add(
        "train.schedule.", [](Config& c) -> std::string& { return c.train.schedule.kind; }, kind);
  }
  return all;
}

}  // namespace strait
