#include "strait/boundary/channel_endpoints.h"

#include <utility>

namespace strait {

ChannelEndpoints::ChannelEndpoints(const ChannelSpec& at_sender, const ChannelSpec& at_receiver, Local local)
    : link(at_sender.link) {
  if (local.sender && local.receiver) {
    LinkEnds ends = link->make_ends();
    sender.emplace(at_sender, std::move(ends.encoder));
    receiver.emplace(at_receiver, std::move(ends.decoder));
  } else if (local.sender) {
    sender.emplace(at_sender);
  } else if (local.receiver) {
    receiver.emplace(at_receiver);
  }
}

at::Tensor ChannelEndpoints::cross(const at::Tensor& x, const MessageContext& context, MessageMode mode,
                                   FrameCheck check) {
  STRAIT_CHECK(sender && receiver, "a message to another process crosses by its transport");
  Buffer frame = sender->encode(x, context, mode, check);
  MessageContext there = context;
  there.device = x.device();
  return receiver->decode(std::move(frame), meta_of(x), there, mode, check);
}

void ChannelEndpoints::prefetch(std::span<const int64_t> ids) {
  if (sender) sender->prefetch(ids);
  if (receiver) receiver->prefetch(ids);
}

void ChannelEndpoints::set_link(const std::shared_ptr<const Link>& new_link) {
  link = new_link;
  if (sender) sender->set_link(new_link);
  if (receiver) receiver->set_link(new_link);
}

Traffic ChannelEndpoints::take_traffic() {
  Traffic traffic;
  if (sender) traffic += sender->take_traffic();
  if (receiver) traffic += receiver->take_traffic();
  return traffic;
}

void ChannelEndpoints::visit_state(StateVisitor& visitor) {
  const auto visit = [&](auto& endpoint, const char* name) {
    PrefixedVisitor prefixed(name, visitor);
    if (endpoint) endpoint->visit_state(prefixed);
  };
  visit(sender, "sender");
  visit(receiver, "receiver");
}

}  // namespace strait
