#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <vector>

#include "strait/base/trace.h"
#include "strait/boundary/boundary.h"
#include "strait/transport/transport.h"

namespace strait {

/// A message of the step that is under way, as both endpoints know it beforehand.
struct MessageSlot {
  int boundary = 0;                             ///< that the message crosses
  Direction direction = Direction::activation;  ///< in which it does
  MessageContext context;  ///< what the executor knows; its spans live until the step's end
  MessageMode mode;        ///< what it is sent for
  MessageMeta meta;        ///< of the tensor

  /// The message's tag for the transport.
  Tag tag() const { return {static_cast<uint32_t>(boundary), direction, context.micro_batch}; }
};

/// Carries tensors over the boundaries of this process's stages: encodes and sends, receives and decodes, in
/// the calling thread.
class Exchange {
 public:
  /// `trace` may be null. Boundaries and transport must outlive it.
  Exchange(std::vector<BoundaryEndpoints>& boundaries, Transport& transport, Trace* trace)
      : boundaries_(boundaries), transport_(transport), trace_(trace) {}
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  /// Says which messages of the step will be received, in the order in which receive() will ask for them.
  virtual void begin(std::vector<MessageSlot> expected);

  /// Encodes and sends the next message of its channel.
  virtual void send(const MessageSlot& message, at::Tensor tensor);

  /// The tensor of the next of the step's messages.
  virtual at::Tensor receive(const MessageSlot& message);

  /// Ends the step: everything is encoded and sent, and no other thread touches a boundary.
  virtual void finish() {}

  /// Gives the step up after an error.
  virtual void cancel() {}

 protected:
  /// The trace; null where none is wanted.
  Trace* trace() const { return trace_; }

  /// The transport.
  Transport& transport() const { return transport_; }

  /// The endpoints of the message's channel.
  ChannelEndpoints& channel_of(const MessageSlot& message) const {
    return boundaries_[static_cast<size_t>(message.boundary)].channel(message.direction);
  }

 private:
  std::vector<BoundaryEndpoints>& boundaries_;
  Transport& transport_;
  Trace* trace_;
};

/// An Exchange of one process, which is at both ends of every channel.
class LocalExchange : public Exchange {
 public:
  using Exchange::Exchange;

  void send(const MessageSlot& message, at::Tensor tensor) override;
  at::Tensor receive(const MessageSlot& message) override;

  /// What was sent is received, so that both ends of every channel have the same state and another step can
  /// begin.
  void cancel() override;

 private:
  std::deque<MessageSlot> under_way_;
};

}  // namespace strait
