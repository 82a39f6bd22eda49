#include "strait/transport/tcp/session.h"

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

constexpr auto kBeat = 1s;     // without a word, after which a side gives a sign of life
constexpr auto kSilence = 5s;  // after which a line counts as lost

// How much older a rank takes another one's word of a third to be than it says. On its way the word has aged,
// and what goes round among ranks that wait for each other must not stay young.
constexpr auto kHearsay = 500ms;

}  // namespace

Session::Session(int peer, Mailroom& mailroom, Events events)
    : peer_(peer), mailroom_(mailroom), events_(std::move(events)) {}

bool Session::attach(std::shared_ptr<Line> line, uint64_t peer_received) {
  if (out_.is_past(peer_received)) return false;
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
  beat();
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
  beat();
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

/// Gives a sign of life, and passes on that of those for whom this rank waits.
void Session::beat() {
  const auto alive = mailroom_.alive_at(peer_);
  if (!alive) return out_.beat();
  const auto now = std::chrono::steady_clock::now();
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(now - *alive);
  out_.beat(age < mailroom_.timeout() ? static_cast<uint64_t>(age.count()) + 1 : 0);
}

/// The other side is not silent as long as it takes in what is sent, however long a message is. That it has had
/// this side's signs of life does not count.
void Session::confirm(const MessageHeader& header) {
  const uint64_t part = out_.confirmed_part();
  const uint64_t messages = out_.confirm(header.received);
  if (messages > 0 || out_.confirmed_part() > part) mailroom_.note_confirmed(peer_, messages);
}

void Session::take(const MessageHeader& header, Buffer message) {
  confirm(header);
  if (header.type == MessageHeader::Type::beat) {
    if (header.size == 0) return;
    const std::chrono::milliseconds age(header.size - 1);
    return mailroom_.note_alive(peer_, std::chrono::steady_clock::now() - age - kHearsay);
  }
  if (header.type == MessageHeader::Type::taken) {
    return mailroom_.make_room(peer_, header.channel, header.size);
  }
  beat();
  if (header.type == MessageHeader::Type::leave) return mailroom_.set_left(peer_);
  if (header.channel.kind >= Kind::failure) {
    return events_.heard(header.channel.kind, std::move(message));
  }
  const bool room = mailroom_.put(peer_, header.channel, std::move(message));
  if (room && !header.channel.is_urgent()) out_.give_room(header.channel.lane());
}

}  // namespace strait::tcp
