#include "strait/pipeline/setup_check.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/transport/handshake.h"

namespace strait {

void check_schedule(const Schedule& schedule) {
  if (!schedule.is_known()) {
    std::vector<std::string> names = schedule_names();
    std::erase_if(names, [](const auto& name) { return steps_per_micro_batch(weight_versions(name)); });
    throw InputError("unknown schedule \"{}\"{}; expected one of: {}", schedule.name(),
                     suggestion(schedule.name(), names), list_of(names));
  }
  if (!steps_per_micro_batch(schedule.weight_versions())) return;
  throw InputError(
      "schedule \"{}\" steps the optimizer after every micro-batch, which only the trainer's loop does; "
      "expected one that leaves the step to the pipeline's user, such as \"1f1b\"",
      schedule.name());
}

void check_boundaries(const PipelineSetup& setup) {
  if (setup.boundaries.size() + 1 != setup.stages.size()) {
    throw InputError("a pipeline of {} stages expects {} boundaries, found {}", setup.stages.size(),
                     setup.stages.empty() ? 0 : setup.stages.size() - 1, setup.boundaries.size());
  }
  std::set<std::string> names;
  for (const Boundary& boundary : setup.boundaries) {
    if (boundary.name.empty() || !names.insert(boundary.name).second) {
      throw InputError("boundary \"{}\": expected a name of its own", boundary.name);
    }
    for (const Link* link : {boundary.links.activations.get(), boundary.links.gradients.get()}) {
      if (setup.micro_batches > 1 && !link->allows_micro_batches()) {
        throw InputError(
            "boundary {}: feedback with {} micro-batches expects a codec that treats every row by itself, "
            "found \"{}\"",
            boundary.name, setup.micro_batches, link->codec().spec());
      }
    }
  }
}

void check_replica_link(const Link& link) {
  if (!link.serves_weights()) {
    throw InputError(
        "replica_link: expected one that keeps nothing per sample or class; a gradient of weights is no "
        "sample's");
  }
  expect_no_previous("replica_link", link);
}

void check_parameters(const PipelineSetup& setup, const std::function<bool(int stage)>& runs) {
  std::map<const void*, std::pair<size_t, size_t>> seen;
  for (size_t stage = 0; stage < setup.stages.size(); ++stage) {
    const auto& parameters = setup.stages[stage].parameters();
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (runs(static_cast<int>(stage)) && parameters[i].device() != setup.device) {
        throw InputError("stage {}: parameter {} is on {}, expected {}", stage, i, parameters[i].device().str(),
                         setup.device.str());
      }
      if (!parameters[i].requires_grad()) continue;  // nobody steps it
      const auto [first, is_new] = seen.try_emplace(parameters[i].unsafeGetTensorImpl(), std::pair(stage, i));
      if (!is_new && first->second.first != stage) {
        throw InputError("stage {}: parameter {} is also parameter {} of stage {}; expected each in one stage",
                         stage, i, first->second.second, first->second.first);
      }
    }
  }
}

std::string setup_text(const PipelineSetup& setup, int processes) {
  Handshake mine{.processes = processes};
  const auto add = [&](std::string key, std::string value) {
    mine.settings.emplace_back(std::move(key), std::move(value));
  };
  add("stages", std::to_string(setup.stages.size()));
  add("schedule", setup.schedule.name());
  add("micro_batches", std::to_string(setup.micro_batches));
  add("batch_size", std::to_string(setup.batch_size));
  add("replicas", std::to_string(setup.replicas));
  add("seed", std::to_string(setup.seed));
  const auto add_link = [&](std::string key, const Link& link) {
    add(std::move(key), fmt::format("codec {}, link {} {}", link.codec().spec(), link.id(), link.spec()));
  };
  for (size_t i = 0; i < setup.boundaries.size(); ++i) {
    const Boundary& boundary = setup.boundaries[i];
    add(fmt::format("name of boundary {}", i), boundary.name);
    add_link(fmt::format("boundary {}, activations", boundary.name), *boundary.links.activations);
    add_link(fmt::format("boundary {}, gradients", boundary.name), *boundary.links.gradients);
  }
  add_link("replicas", *setup.replica_link);
  return mine.text();
}

}  // namespace strait
