#include "strait/doctor/rank_facts.h"

#include <ATen/core/Tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/host.h"
#include "strait/base/json_reader.h"
#include "strait/base/text.h"
#include "strait/experiment/handshake.h"
#include "strait/experiment/run.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"
#include "strait/train/step_plan.h"
#include "strait/wire/frame.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// On the disk where the folder is, or will be; 0 where the system does not say.
uint64_t free_disk(const fs::path& folder) {
  std::error_code error;
  const auto space = fs::space(nearest_there(folder), error);
  return error ? 0 : space.available;
}

/// The most that Linux gives to a buffer of a TCP connection; 0 where it does not say.
uint64_t buffer_most(const char* name) {
  std::ifstream sizes(fmt::format("/proc/sys/net/ipv4/{}", name));  // the least, the first, the most
  std::array<uint64_t, 3> bytes = {};
  for (auto& size : bytes) sizes >> size;
  return sizes ? bytes.back() : 0;
}

/// How many checkpoints are on the disk at least while one is written: that one and those that stay, but no
/// more than the run makes in so many steps an epoch.
uint64_t checkpoints_at_once(const Config& config, int64_t steps_of_epoch) {
  const CheckpointOptions& checkpoint = config.checkpoint;
  const auto most = static_cast<uint64_t>(checkpoint.keep) + 1;
  const auto epochs = static_cast<uint64_t>(config.train.epochs);
  const auto every = checkpoint.every_epochs == 0 ? epochs : static_cast<uint64_t>(checkpoint.every_epochs);
  uint64_t made = (epochs + every - 1) / every;
  if (checkpoint.every_steps > 0) {
    const uint64_t steps = epochs * static_cast<uint64_t>(steps_of_epoch);
    made =
        std::max(made, steps / static_cast<uint64_t>(checkpoint.every_steps));  // some of both may be the same
  }
  return std::min(most, made);
}

uint64_t weight_bytes(const Config& config, const Model& model, const std::vector<int>& stages) {
  const auto ranges = cut_into_stages(model, config.model.cuts);
  uint64_t bytes = 0;
  for (const int stage : stages) {
    for (const auto& parameter : model.part(ranges[static_cast<size_t>(stage)]).parameters()) {
      bytes += parameter.nbytes();
    }
  }
  return bytes;
}

}  // namespace

RankFacts facts_of_process(const Config& config, int rank, const std::vector<int>& stages,
                           const fs::path& folder, int processes_here) {
  RankFacts facts{.rank = rank,
                  .host = host_name(),
                  .processor = processor_name(),
                  .cores = usable_cores(),
                  .free_memory = free_memory(),
                  .folder = folder.string(),
                  .free_disk = free_disk(folder),
                  .wire_version = kWireVersion,
                  .code_version = code_version(),
                  .library_version = library_version(),
                  .send_buffer = buffer_most("tcp_wmem"),
                  .receive_buffer = buffer_most("tcp_rmem"),
                  .settings = shared_settings(config)};
  try {
    check_precision(config.train.precision, device_of(config.train.device));
    facts.weight_bytes = weight_bytes(config, make_network(config, processes_here), stages);
    check_store_folder(config);
    const int64_t samples = load_splits(config).train->size();
    const StepPlan plan(samples, config.data.batch_size, config.train, config.pipeline);
    facts.checkpoint_bytes = facts.weight_bytes * checkpoints_at_once(config, plan.steps());
  } catch (const std::exception& error) {
    facts.problem = reason_text(error);
  }
  return facts;
}

std::string facts_text(const RankFacts& facts) {
  json settings = json::array();
  for (const auto& [key, value] : facts.settings) settings.push_back({{"key", key}, {"value", value}});
  return json{{"host", facts.host},
              {"processor", facts.processor},
              {"cores", facts.cores},
              {"free_memory", facts.free_memory},
              {"folder", facts.folder},
              {"free_disk", facts.free_disk},
              {"wire_version", facts.wire_version},
              {"code_version", facts.code_version},
              {"library_version", facts.library_version},
              {"send_buffer", facts.send_buffer},
              {"receive_buffer", facts.receive_buffer},
              {"weight_bytes", facts.weight_bytes},
              {"checkpoint_bytes", facts.checkpoint_bytes},
              {"problem", facts.problem},
              {"settings", settings}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

RankFacts parse_facts(const std::string& text, int rank) {
  try {
    const JsonText document(text, fmt::format("what rank {} says of itself", rank));
    const JsonReader root = document.root();
    RankFacts facts{.rank = rank,
                    .host = root.text("host"),
                    .processor = root.text("processor"),
                    .cores = static_cast<int>(root.count("cores", 1U << 20)),
                    .free_memory = root.count("free_memory"),
                    .folder = root.text("folder"),
                    .free_disk = root.count("free_disk"),
                    .wire_version = root.count("wire_version"),
                    .code_version = root.text("code_version"),
                    .library_version = root.text("library_version"),
                    .weight_bytes = root.count("weight_bytes"),
                    .checkpoint_bytes = root.count("checkpoint_bytes"),
                    .problem = root.text("problem")};
    // Another version may not say these.
    if (root.has("send_buffer")) facts.send_buffer = root.count("send_buffer");
    if (root.has("receive_buffer")) facts.receive_buffer = root.count("receive_buffer");
    const JsonReader settings = root.at("settings");
    for (size_t i = 0; i < settings.size(); ++i) {
      facts.settings.emplace_back(settings.at(i).text("key"), settings.at(i).text("value"));
    }
    return facts;
  } catch (const InputError& error) {
    throw WireError("{}", error.what());
  }
}

}  // namespace strait
