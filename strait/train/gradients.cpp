#include "strait/train/gradients.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_like.h>

#include "strait/base/error.h"

namespace strait {

Gradients::Gradients(const Model& model, const std::vector<LayerRange>& stages,
                     const std::vector<int>& rank_of_stage, Group& group)
    : group_(group), stage_count_(stages.size()) {
  for (const auto& [first, second] : model.ties) ties_.push_back({.first = {}, .second = {}, .name = second});
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    const int rank = rank_of_stage[stage];
    for (auto& [name, parameter] : model.part(stages[stage]).named_parameters()) {
      bool counts = true;
      for (size_t i = 0; i < ties_.size(); ++i) {
        Tie& tie = ties_[i];
        if (name == model.ties[i].first) std::tie(tie.first, tie.first_rank) = std::pair(parameter, rank);
        if (name != model.ties[i].second) continue;
        std::tie(tie.second, tie.second_rank) = std::pair(parameter, rank);
        counts = false;
      }
      if (rank != group_.rank()) continue;
      own_.push_back(parameter);
      if (counts) counted_.emplace_back(stage, parameter);
    }
  }
  const at::NoGradGuard no_grad;
  for (const Tie& tie : ties_) {
    STRAIT_CHECK(tie.first.defined() && tie.second.defined(), "there is no parameter for the tie {}", tie.name);
    at::Tensor(tie.second).copy_(tie.first);  // every process has the whole network when it begins
  }
}

void Gradients::sum_ties() {
  const at::NoGradGuard no_grad;
  const auto exchange = [&](const at::Tensor& mine, int other, bool sends_first, const std::string& name) {
    const at::Tensor here = mine.to(at::kCPU).contiguous();
    at::Tensor theirs = at::empty_like(here);
    if (sends_first) group_.send(here, other, "gradient of " + name);
    group_.receive(theirs, other, "gradient of " + name);
    if (!sends_first) group_.send(here, other, "gradient of " + name);
    return theirs.to(mine.device());
  };
  for (const Tie& tie : ties_) {
    const bool has_first = tie.first_rank == group_.rank();
    const bool has_second = tie.second_rank == group_.rank();
    if (has_first && has_second) {
      tie.first.grad().add_(tie.second.grad());
      tie.second.grad().copy_(tie.first.grad());
    } else if (has_first) {
      tie.first.grad().add_(exchange(tie.first.grad(), tie.second_rank, true, tie.name));
    } else if (has_second) {
      // The same sum in the same order: first plus second.
      tie.second.grad().copy_(
          exchange(tie.second.grad(), tie.first_rank, false, tie.name).add_(tie.second.grad()));
    }
  }
}

void Gradients::clip(double limit) { clip_gradients(counted_, own_, stage_count_, limit, group_); }

}  // namespace strait
