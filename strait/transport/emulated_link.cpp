#include "strait/transport/emulated_link.h"

#include <utility>

namespace strait {

EmulatedLink::EmulatedLink(std::unique_ptr<Transport> transport, std::shared_ptr<EmulatedWire> wire,
                           const std::stop_token& end)
    : transport_(std::move(transport)),
      wire_(std::move(wire)),
      messages_([this](Message& message) { deliver(message); }),
      on_end_(end, [this] {
        messages_.fail(std::make_exception_ptr(Error("the emulated link: this rank has given up")));
      }) {}

// Messages that are on their way go first, while `end` can still be asked for.
EmulatedLink::~EmulatedLink() { messages_.finish(); }

void EmulatedLink::send(Tag tag, Buffer message) {
  messages_.wait_for_room(tag);
  const auto arrival = wire_->send(message.size(), std::chrono::steady_clock::now());
  messages_.push({tag, std::move(message), arrival});
}

void EmulatedLink::deliver(Message& message) {
  messages_.wait_until(message.arrival);
  transport_->send(message.tag, std::move(message.buffer));
}

Buffer EmulatedLink::receive(Tag tag, size_t bound) {
  messages_.check();
  return transport_->receive(tag, bound);
}

void EmulatedLink::drain() {
  messages_.drain();
  transport_->drain();
}

void EmulatedLink::cancel() {
  messages_.fail(std::make_exception_ptr(Error("the emulated link has been given up")));
  transport_->cancel();
}

}  // namespace strait
