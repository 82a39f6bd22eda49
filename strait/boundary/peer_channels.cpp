#include "strait/boundary/peer_channels.h"

#include <utility>

namespace strait {

PeerChannels::PeerChannels(int rank, int ranks, const std::function<ChannelSpec(int from)>& spec) {
  for (int from = 0; from < ranks; ++from) {
    const ChannelSpec channel = spec(from);
    ChannelEndpoints here(channel, channel, {.sender = from == rank, .receiver = true});
    if (here.sender) sender_ = std::move(here.sender);
    receivers_.push_back(std::move(here.receiver).value());
  }
  STRAIT_CHECK(sender_, "rank {} of {}", rank, ranks);
}

at::Tensor PeerChannels::sum(const std::function<Buffer(int from)>& frame, const MessageMeta& meta,
                             const MessageContext& context, MessageMode mode) {
  at::Tensor sum;
  for (int from = 0; from < static_cast<int>(receivers_.size()); ++from) {
    const at::Tensor part = receiver(from).decode(frame(from), meta, context, mode);
    sum = from == 0 ? part : sum.add_(part);  // what decode() returns is the caller's
  }
  return sum;
}

Traffic PeerChannels::take_received() {
  Traffic received;
  for (auto& receiver : receivers_) received += receiver.take_traffic();
  return received;
}

void PeerChannels::visit_state(StateVisitor& visitor) {
  PrefixedVisitor of_sender("sender", visitor);
  sender_->visit_state(of_sender);
  for (size_t from = 0; from < receivers_.size(); ++from) {
    PrefixedVisitor of_receiver(fmt::format("receiver-{}", from), visitor);
    receivers_[from].visit_state(of_receiver);
  }
}

}  // namespace strait
