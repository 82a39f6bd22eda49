#include "strait/transport/stop_agreement.h"

#include <numeric>

namespace strait {
namespace {

/// The first rank talks to all others, and these to the first.
std::vector<int> peers_of(const Group& group) {
  if (group.rank() > 0) return {0};
  std::vector<int> others(static_cast<size_t>(group.size()) - 1);
  std::iota(others.begin(), others.end(), 1);
  return others;
}

}  // namespace

StopAgreement::StopAgreement(Group& group)
    : decides_(group.rank() == 0),
      channel_(group.make_control(peers_of(group), "stop request",
                                  [this](const ControlMessage& message) { take(message); })) {}

void StopAgreement::take(const ControlMessage& message) {
  if (message.kind == ControlKind::stop_request) requested_ = true;
  if (message.kind == ControlKind::last_step) last_ = message.number;
}

void StopAgreement::begin_step(bool wanted) {
  step_ += 1;
  if (wanted && !asked_) {
    asked_ = true;
    if (decides_) {
      requested_ = true;
    } else {
      channel_->post({ControlKind::stop_request, step_});
    }
  }
  if (!decides_ || !requested_ || last_ != kNone) return;
  channel_->deliver({ControlKind::last_step, step_});
  last_ = step_;
}

}  // namespace strait
