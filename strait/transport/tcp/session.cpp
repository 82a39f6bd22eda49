#include "strait/transport/tcp/session.h"

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeat = 1s;     // without a word, after which a side gives a sign of life
constexpr auto kSilence = 5s;  // after which a line counts as lost

}  // namespace

Session::Session(int peer, Mailroom& mailroom, Events events)
    : peer_(peer), mailroom_(mailroom), events_(std::move(events)) {}

bool Session::attach(std::shared_ptr<Line> line, uint64_t peer_received) {
  lose("replaced");
  try {
    out_.carry_on_from(peer_received);
  } catch (const WireError& error) {
    events_.broken(error.what());
    return false;
  }
  line_ = std::move(line);
  heard_ = wrote_ = std::chrono::steady_clock::now();
  if (lost_) {
    const auto now = std::chrono::system_clock::now();
    const auto lasted = std::chrono::duration_cast<std::chrono::system_clock::duration>(heard_ - *lost_);
    outages_.push_back({.begin = now - lasted, .end = now});
  }
  line_->set_speaker(*this);
  out_.beat();
  flush();
  return true;
}

void Session::lose(const std::string& reason) {
  if (!line_) return;
  line_->close();
  line_.reset();
  lost_ = std::chrono::steady_clock::now();
  lost_reason_ = reason;
  if (mailroom_.has_left(peer_)) mailroom_.set_closed(peer_);
}

void Session::flush() {
  // A line that pumps may let go of the session's hold on it.
  if (const auto line = line_) line->pump();
}

void Session::tick(Time now) {
  if (!line_) return;
  if (now - heard_ > kSilence) return lose("no sign of life");
  if (now - wrote_ < kBeat) return;
  out_.beat();
  flush();
}

void Session::got(size_t bytes) {
  heard_ = std::chrono::steady_clock::now();
  try {
    if (auto message = in_.got(bytes)) {
      take(message->first, std::move(message->second));
    } else {
      mailroom_.touch(peer_);
    }
  } catch (const WireError& error) {
    lose(error.what());
    events_.broken(error.what());
  }
}

void Session::wrote(size_t bytes) {
  wrote_ = std::chrono::steady_clock::now();
  out_.wrote(bytes);
}

void Session::take(const MessageHeader& header, Buffer message) {
  if (const uint64_t messages = out_.confirm(header.received)) mailroom_.note_confirmed(peer_, messages);
  if (header.type == MessageHeader::Type::beat) return;
  if (header.type == MessageHeader::Type::taken) {
    return mailroom_.make_room(peer_, header.channel, header.size);
  }
  out_.beat();
  if (header.type == MessageHeader::Type::leave) return mailroom_.set_left(peer_);
  if (header.channel.kind >= Kind::failure) {
    return events_.heard(header.channel.kind, std::move(message));
  }
  const bool room = mailroom_.put(peer_, header.channel, std::move(message));
  if (room && !header.channel.is_urgent()) out_.give_room(header.channel.lane());
}

}  // namespace strait::tcp
