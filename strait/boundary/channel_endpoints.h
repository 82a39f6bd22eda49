#pragma once

#include <memory>
#include <optional>
#include <span>

#include "strait/boundary/channel.h"

namespace strait {

/// The endpoints of one channel that are in this process: both, one, or none of them.
struct ChannelEndpoints {
  /// Which of the two are here.
  struct Local {
    bool sender = true;    ///< encodes
    bool receiver = true;  ///< decodes
  };

  /// The channel as its sender and its receiver see it: they differ in nothing but the indices of their side.
  ChannelEndpoints(const ChannelSpec& at_sender, const ChannelSpec& at_receiver, Local local);

  /// Both endpoints of a channel in which no indices are reused.
  explicit ChannelEndpoints(const ChannelSpec& spec) : ChannelEndpoints(spec, spec, {}) {}

  /// Sends the next message through both endpoints, which have to be here: what the receiver sees of `x`, of
  /// its shape. Throws as Sender::encode().
  at::Tensor cross(const at::Tensor& x, const MessageContext& context, MessageMode mode = {},
                   FrameCheck check = FrameCheck::verify);

  /// Says which samples the batch after the next one has.
  void prefetch(std::span<const int64_t> ids);

  /// What the endpoints counted since the last call, as one.
  Traffic take_traffic();

  /// From now on messages go through `link`, as at the endpoint in another process; see Sender::set_link().
  void set_link(const std::shared_ptr<const Link>& new_link);

  /// The state of the endpoints, as `sender.STATE` and `receiver.STATE`.
  void visit_state(StateVisitor& visitor);

  std::shared_ptr<const Link> link;  ///< of the channel
  std::optional<Sender> sender;      ///< where it is here
  std::optional<Receiver> receiver;  ///< where it is here
};

}  // namespace strait
