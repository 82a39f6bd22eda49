#include "strait/transport/tcp/connection.h"

#include <utility>

namespace strait::tcp {
namespace {

constexpr size_t kTurn = size_t{4} << 20;  // bytes after which others have their turn

}  // namespace

void Connection::pump() {
  is_asked_again_ = pumping_;
  if (pumping_ || !is_open()) return;
  const auto self = shared_from_this();  // a speaker may let go of it
  pumping_ = true;
  if (prove()) {
    size_t moved = 0;
    bool reads = true;
    bool writes = true;
    while (is_open() && (reads || writes) && moved < kTurn) {
      if (writes) writes = write(moved);
      if (is_open() && reads) reads = read(moved);
      if (!is_open()) break;
      const bool is_new = std::exchange(is_new_speaker_, false);
      if (std::exchange(is_asked_again_, false) || is_new) reads = writes = true;
      // What was read may have given something to write.
      if (!writes && !waits_to_write_) writes = !speaker_->bytes().empty();
    }
    if (is_open() && moved >= kTurn) loop_.post([self] { self->pump(); });
  }
  pumping_ = false;
}

/// Whether both sides have proved what they know.
bool Connection::prove() {
  if (proved_) return true;
  const Progress progress = stream_->prove();
  if (progress.state != Progress::State::moved) {
    settle(progress);
    return false;
  }
  proved_ = true;
  speaker_->opened();
  return is_open();
}

/// Whether to go on.
bool Connection::write(size_t& moved) {
  const auto bytes = speaker_->bytes();
  if (bytes.empty()) return false;
  const Progress progress = stream_->write(bytes);
  if (!settle(progress)) return false;
  moved += progress.bytes;
  speaker_->wrote(progress.bytes);
  return is_open();
}

bool Connection::read(size_t& moved) {
  const auto space = speaker_->space();
  if (space.empty()) return false;
  const Progress progress = stream_->read(space);
  if (!settle(progress)) return false;
  moved += progress.bytes;
  speaker_->got(progress.bytes);
  return is_open();
}

/// Whether something was moved; has the rest done later where it was not.
bool Connection::settle(const Progress& progress) {
  if (progress.state == Progress::State::moved) return true;
  if (progress.state == Progress::State::closed) {
    close();
    speaker_->closed(stream_->reason());
    return false;
  }
  wait_for(progress.state);
  return false;
}

void Connection::wait_for(Progress::State state) {
  const bool to_read = state == Progress::State::wants_read;
  bool& waits = to_read ? waits_to_read_ : waits_to_write_;
  if (waits) return;
  waits = true;
  const auto go_on = [weak = weak_from_this(), to_read] {
    const auto self = weak.lock();
    if (!self) return;
    (to_read ? self->waits_to_read_ : self->waits_to_write_) = false;
    self->pump();
  };
  if (to_read) {
    watch_->when_readable(go_on);
  } else {
    watch_->when_writable(go_on);
  }
}

void Connection::close() {
  if (!is_open()) return;
  watch_.reset();
  shutdown(stream_->socket().descriptor(), SHUT_RDWR);
}

}  // namespace strait::tcp
