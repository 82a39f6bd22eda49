#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/transport/link_status.h"
#include "strait/transport/tcp/connection.h"
#include "strait/transport/tcp/inbound.h"
#include "strait/transport/tcp/mailroom.h"
#include "strait/transport/tcp/outbound.h"

namespace strait::tcp {

/// What two ranks say to each other, over one line after another: what a line that was lost did not bring, the
/// next one brings again. So nothing is lost, twice or out of order. Apart from out(), all is for
/// the loop's thread.
class Session : public Speaker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// How a session tells of what is not for the mailroom.
  struct Events {
    /// A message that the session's owner is to look at came.
    std::function<void(Kind kind, Buffer message)> heard;

    /// The other side does not keep to what is agreed.
    std::function<void(const std::string& reason)> broken;
  };

  Session(int peer, Mailroom& mailroom, Events events);
  ~Session() override { lose("closed"); }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// What is sent; whoever adds something has flush() called.
  Outbound& out() { return out_; }

  /// Goes on over a line, at whose other side `peer_received` bytes of this one's have been heard. False where
  /// the line is of no use: that cannot be, or was said before the other side had another line and heard more.
  bool attach(std::shared_ptr<Line> line, uint64_t peer_received);

  /// Lets go of the line.
  void lose(const std::string& reason);

  /// Writes what there is.
  void flush();

  /// Looks, a few times a second, at whether the line still works, and keeps it alive.
  void tick(Time now);

  /// Bytes of the other side's that have come.
  uint64_t received() const { return in_.received(); }

  bool is_connected() const { return line_ != nullptr; }

  /// Whether there has been a line.
  bool was_connected() const { return lost_.has_value() || is_connected(); }

  /// Since when there is none, and why.
  Time lost_at() const { return lost_.value_or(Time()); }
  const std::string& lost_reason() const { return lost_reason_; }

  /// When there was none before; they are over.
  const std::vector<Outage>& outages() const { return outages_; }

  std::span<std::byte> space() override { return in_.space(); }
  void got(size_t bytes) override;
  std::span<const std::byte> bytes() override { return out_.next(in_.received()); }
  void wrote(size_t bytes) override;
  void closed(const std::string& reason) override { lose(reason); }

 private:
  void beat();
  void confirm(const MessageHeader& header);
  void take(const MessageHeader& header, Buffer message);

  int peer_;
  Mailroom& mailroom_;
  Events events_;
  Inbound in_;
  Outbound out_;
  std::shared_ptr<Line> line_;
  Time heard_ = {};
  Time wrote_ = {};
  std::optional<Time> lost_;
  std::string lost_reason_;
  std::vector<Outage> outages_;
};

}  // namespace strait::tcp
