#include "strait/train/trainer_checkpoints.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>

#include <utility>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/formats/safetensors.h"

namespace strait {

void TrainerCheckpoints::keep(CheckpointWriter writer, std::string config, std::string data) {
  writer_ = std::move(writer);
  config_ = std::move(config);
  data_ = std::move(data);
}

StateVisit TrainerCheckpoints::optimizer_state() {
  return [this](StateVisitor& visitor) { update_.visit_optimizer_state(visitor); };
}

StateVisit TrainerCheckpoints::replicas_state() {
  return [this](StateVisitor& visitor) { update_.visit_replicas_state(visitor); };
}

void TrainerCheckpoints::write(const TrainingState& state, const std::vector<std::string>& metrics) {
  STRAIT_CHECK(writer_.has_value(), "no checkpoints are kept");
  writer_->write(placement_.group(), {state.epoch, state.batches}, [&](const std::filesystem::path& folder) {
    write_checkpoint(folder, placement_.own(), optimizer_state(), executor_.boundaries(), replicas_state(),
                     {.state = state,
                      .place = placement_.topology(),
                      .seed = seed_,
                      .config = config_,
                      .data = data_,
                      .metrics = metrics,
                      .checksums = {}});
  });
}

void TrainerCheckpoints::resume(const Checkpoint& from, bool may_lack_state) {
  Model own = placement_.own();
  const bool alone = placement_.is_alone();
  from.load_weights(own, placement_.model());
  from.load_optimizer(optimizer_state(), update_.optimizer_state_names(), alone);
  from.load_links(executor_.boundaries(), replicas_state(), alone, may_lack_state);
  from.load_random();
  if (from.record().state.step > 0) update_.clear();
}

void TrainerCheckpoints::warm_start(const Checkpoint& from, bool with_optimizer) {
  Model own = placement_.own();
  const bool alone = placement_.is_alone();
  from.load_weights(own, placement_.model());
  if (with_optimizer) from.load_optimizer(optimizer_state(), update_.optimizer_state_names(), alone);
  if (from.record().seed == seed_) from.load_random();
  if (from.record().state.step > 0) update_.clear();
}

void TrainerCheckpoints::take_evaluation_state(const Checkpoint& from) {
  const at::NoGradGuard no_grad;
  Model own = placement_.own();
  std::vector<at::Tensor> here;
  for (const auto& [name, value] : own.state()) here.push_back(value.clone());
  from.load_weights(own, placement_.model());
  std::string other;
  for (size_t i = 0; const auto& [name, value] : own.state()) {
    if (!at::equal(here[i], value)) other = name;
    value.copy_(here[i++]);
  }
  if (!other.empty()) {
    throw InputError("{}: is of other weights: tensor {} differs", from.folder().string(), in_quotes(other));
  }
  if (!from.load_evaluation_state(executor_.boundaries())) {
    throw InputError("{}: has no feedback state of activations", from.folder().string());
  }
}

}  // namespace strait
