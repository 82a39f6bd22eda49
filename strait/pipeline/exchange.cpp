#include "strait/pipeline/exchange.h"

#include <algorithm>
#include <exception>
#include <utility>

namespace strait {

void Exchange::begin(std::vector<MessageSlot> /*expected*/) {}

void Exchange::send(const MessageSlot& message, at::Tensor tensor) {
  Sender& sender = *channel_of(message).sender;
  const auto micro_batch = static_cast<int>(message.context.micro_batch);
  DeviceWire* const wire = transport_.device_wire(message.tag());
  at::Tensor there;
  Buffer frame = [&] {
    const TraceSpan span(trace_, Lane::encode, to_string(message.direction), message.boundary, micro_batch);
    return sender.encode(tensor, message.context, message.mode, transport_.frame_check(),
                         wire == nullptr ? nullptr : &there);
  }();
  tensor.reset();  // its memory is free for the next while the frame is under way
  const TraceSpan span(trace_, Lane::send, to_string(message.direction), message.boundary, micro_batch);
  transport_.send(message.tag(), std::move(frame));
  if (there.defined()) wire->send(message.tag(), there);
}

at::Tensor Exchange::receive(const MessageSlot& message) {
  Receiver& receiver = *channel_of(message).receiver;
  const auto micro_batch = static_cast<int>(message.context.micro_batch);
  Buffer frame = [&] {
    const TraceSpan span(trace_, Lane::receive, to_string(message.direction), message.boundary, micro_batch);
    return transport_.receive(message.tag(), receiver.frame_bound(message.meta));
  }();
  at::Tensor there;
  if (DeviceWire* const wire = transport_.device_wire(message.tag())) {
    if (const size_t size = receiver.bytes_there(frame, message.meta, message.context, message.mode);
        size > 0) {
      const TraceSpan span(trace_, Lane::receive, to_string(message.direction), message.boundary, micro_batch);
      there = wire->receive(message.tag(), size);
    }
  }
  const TraceSpan span(trace_, Lane::decode, to_string(message.direction), message.boundary, micro_batch);
  return receiver.decode(std::move(frame), message.meta, message.context, message.mode,
                         transport_.frame_check(), there.defined() ? &there : nullptr);
}

void LocalExchange::send(const MessageSlot& message, at::Tensor tensor) {
  Exchange::send(message, std::move(tensor));
  under_way_.push_back(message);
}

at::Tensor LocalExchange::receive(const MessageSlot& message) {
  const auto is_it = [&](const MessageSlot& other) { return other.tag() == message.tag(); };
  if (const auto found = std::ranges::find_if(under_way_, is_it); found != under_way_.end()) {
    under_way_.erase(found);
  }
  return Exchange::receive(message);
}

void LocalExchange::cancel() {
  while (!under_way_.empty()) {
    const MessageSlot message = under_way_.front();
    try {
      receive(message);
    } catch (const std::exception&) {
      continue;  // the step's own error counts; the channel's next message is refused by its sequence
    }
  }
}

}  // namespace strait
