#include "strait/train/placement.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "strait/base/units.h"
#include "strait/pipeline/nccl_transport.h"
#include "strait/pipeline/schedules.h"
#include "strait/transport/emulated_group.h"
#include "strait/transport/emulated_loopback.h"

namespace strait {
namespace {

std::optional<LinkRate> link_of(const PipelineOptions& pipeline) {
  if (pipeline.link.empty()) return {};
  return parse_link_rate(pipeline.link, "pipeline.link");
}

std::shared_ptr<Group> own_pipeline(const std::shared_ptr<Group>& group, size_t cuts,
                                    const PipelineOptions& pipeline) {
  check_process_count(static_cast<int>(cuts) + 1, pipeline, group->size());
  return pipeline_of(group, {group->rank(), group->size(), pipeline.replicas});
}

/// Nothing where NCCL carries nothing: an emulated link is to carry all.
std::optional<std::chrono::milliseconds> nccl_timeout_of(const PipelineOptions& pipeline) {
  if (pipeline.transport != "nccl" || !pipeline.link.empty()) return {};
  const std::chrono::duration<double> timeout(parse_seconds(pipeline.timeout, "pipeline.timeout"));
  return std::chrono::ceil<std::chrono::milliseconds>(timeout);
}

/// As in the plans: one after another, and round again.
std::vector<int> place_stages(size_t stages, int ranks) {
  std::vector<int> of_stages;
  for (size_t i = 0; i < stages; ++i) of_stages.push_back(static_cast<int>(i) % ranks);
  return of_stages;
}

}  // namespace

Placement::Placement(Model model, std::vector<std::string> cuts, const PipelineOptions& pipeline,
                     std::shared_ptr<Group> group)
    : model_(std::move(model)),
      cuts_(std::move(cuts)),
      link_(link_of(pipeline)),
      nccl_timeout_(nccl_timeout_of(pipeline)),
      group_(link_ && group->size() > 1 ? over_link(std::move(group), *link_) : std::move(group)),
      pipeline_(own_pipeline(group_, cuts_.size(), pipeline)),
      replicas_(pipeline.replicas),
      stages_per_rank_(pipeline.stages_per_rank),
      stages_(cut_into_stages(model_, cuts_)),
      ranks_(place_stages(stages_.size(), pipeline_->size())) {}

Model Placement::own() const {
  Model own{{}, model_.sample_shape};
  for (size_t i = 0; i < stages_.size(); ++i) {
    if (!is_here(i)) continue;
    const Model stage = model_.part(stages_[i]);
    own.layers.insert(own.layers.end(), stage.layers.begin(), stage.layers.end());
  }
  return own;
}

std::string Placement::stage_name(size_t stage) const {
  const LayerRange& range = stages_[stage];
  return fmt::format("{}..{}", model_.layers[range.begin].name, model_.layers[range.end - 1].name);
}

std::unique_ptr<Transport> Placement::make_emulated_loopback() const {
  const size_t processes = std::max<size_t>(1, stages_.size() / static_cast<size_t>(stages_per_rank_));
  std::vector<std::shared_ptr<EmulatedWire>> of_processes;
  for (size_t i = 0; i < processes; ++i) of_processes.push_back(std::make_shared<EmulatedWire>(*link_));
  std::vector<EmulatedLoopback::Wires> wires;
  for (size_t cut = 0; cut < cuts_.size(); ++cut) {
    const EmulatedLoopback::Wires at_cut = {.activations = of_processes[cut % processes],
                                            .gradients = of_processes[(cut + 1) % processes]};
    wires.insert(wires.end(), passes_input() ? 2 : 1, at_cut);
  }
  return std::make_unique<EmulatedLoopback>(std::move(wires));
}

std::unique_ptr<Transport> Placement::make_transport(c10::Device device) {
  if (link_ && is_alone() && static_cast<int>(stages_.size()) > stages_per_rank_)
    return make_emulated_loopback();
  std::vector<int> peers;
  std::vector<int> peers_by_nccl;  // it carries no integers
  std::vector<std::string> names;
  for (size_t i = 0; i < cuts_.size(); ++i) {
    const int peer = is_here(i) ? ranks_[i + 1] : is_here(i + 1) ? ranks_[i] : -1;
    const auto add = [&](const std::string& name, bool by_nccl) {
      peers.push_back(peer);
      peers_by_nccl.push_back(by_nccl ? peer : -1);
      names.push_back(name);
    };
    add(cuts_[i], true);
    if (passes_input()) add(input_boundary(cuts_[i]), false);
  }
  auto transport = pipeline_->make_transport(peers, names);
  if (!nccl_timeout_) return transport;
  return over_nccl(std::move(transport), *pipeline_, peers_by_nccl, names, {device, *nccl_timeout_});
}

const Model& Placement::collect_model() {
  for (size_t i = 0; i < stages_.size(); ++i) {
    const int owner = ranks_[i];
    if (owner == 0 || (owner != pipeline_->rank() && pipeline_->rank() != 0)) continue;
    for (const auto& [name, value] : model_.part(stages_[i]).state()) {
      const std::string what = "weights of " + name;
      at::Tensor here = value.detach().to(at::kCPU).contiguous();
      if (pipeline_->rank() == owner) {
        pipeline_->send(here, 0, what);
      } else {
        pipeline_->receive(here, owner, what);
        const at::NoGradGuard no_grad;
        value.copy_(here);
      }
    }
  }
  return model_;
}

}  // namespace strait
