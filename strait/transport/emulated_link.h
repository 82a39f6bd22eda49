#pragma once

#include <functional>
#include <memory>
#include <stop_token>

#include "strait/transport/emulated_wire.h"
#include "strait/transport/send_queue.h"
#include "strait/transport/transport.h"

namespace strait {

/// Another transport between processes, as if what this one sends went over an emulated link: a thread hands a
/// message on when it would have arrived. The bytes and their order stay as they are.
///
/// At most 16 messages of a boundary and direction are under way, latency included; then send() waits, as it
/// does for a receiver that is far behind. A receiver hears nothing of a message before all of it has arrived.
class EmulatedLink : public Transport {
 public:
  /// `wire`: for all that the process sends, over other transports too. `end`: once it is asked for, every wait
  /// ends with Error, those to come too.
  EmulatedLink(std::unique_ptr<Transport> transport, std::shared_ptr<EmulatedWire> wire,
               const std::stop_token& end = {});

  /// Waits until all messages have arrived, unless the transport was cancelled or one could not be sent.
  ~EmulatedLink() override;
  EmulatedLink(const EmulatedLink&) = delete;
  EmulatedLink& operator=(const EmulatedLink&) = delete;

  // Those that send or wait throw what the other transport threw for a message that could not be sent.

  void send(Tag tag, Buffer message) override;
  void expect(Tag tag, size_t bound) override { transport_->expect(tag, bound); }
  Buffer receive(Tag tag, size_t bound) override;
  void drain() override;
  void cancel() override;
  FrameCheck frame_check() const override { return transport_->frame_check(); }

 private:
  struct Message {
    Tag tag;
    Buffer buffer;
    EmulatedWire::Time arrival;
  };
  void deliver(Message& message);

  std::unique_ptr<Transport> transport_;
  std::shared_ptr<EmulatedWire> wire_;
  SendQueue<Message> messages_;                       ///< under way
  std::stop_callback<std::function<void()>> on_end_;  // last: it may be called at once
};

}  // namespace strait
