#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "strait/boundary/channel_endpoints.h"

namespace strait {

/// The endpoints of one rank of the channels over which each of several ranks sends the same kind of message to
/// all others: the sender of its own, and a receiver of each. The receiver of its own sees what the others see
/// of it, so that all ranks get the same bits.
class PeerChannels {
 public:
  /// `spec(from)` is the channel of what rank `from` sends; channels differ in `boundary`, so that a frame says
  /// whose it is and ranks draw apart. 0 <= rank < ranks.
  PeerChannels(int rank, int ranks, const std::function<ChannelSpec(int from)>& spec);

  /// Encodes what goes to all others, and to the own receiver.
  Sender& sender() { return *sender_; }

  /// Of what rank `from` sends.
  Receiver& receiver(int from) { return receivers_.at(static_cast<size_t>(from)); }

  /// The sum, in the order of ranks, of what the messages of all ranks come to. `frame(from)` gives that of
  /// rank `from`; it is called once for each, in order. Throws as Receiver::decode().
  at::Tensor sum(const std::function<Buffer(int from)>& frame, const MessageMeta& meta,
                 const MessageContext& context, MessageMode mode);

  /// What the receivers counted since the last call.
  Traffic take_received();

  /// The state of the endpoints, as `sender.STATE` and `receiver-RANK.STATE`.
  void visit_state(StateVisitor& visitor);

 private:
  std::optional<Sender> sender_;
  std::vector<Receiver> receivers_;  ///< by rank
};

}  // namespace strait
