#include "strait/transport/tcp/mailroom.h"

#include <algorithm>

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

constexpr std::chrono::milliseconds kLateWord(1000);  // for the reason why a rank has left to come

// A rank that takes in a long message says so every second.
constexpr std::chrono::milliseconds kBetweenParts(3000);

}  // namespace

using std::chrono::milliseconds;
using std::chrono::steady_clock;

Mailroom::Mailroom(int rank, int ranks, milliseconds timeout)
    : rank_(rank), timeout_(timeout), peers_(static_cast<size_t>(ranks)) {}

bool Mailroom::put(int from, const Channel& channel, Buffer message) {
  const std::scoped_lock lock(mutex_);
  Box& to = box(from, channel);
  to.messages.push_back(std::move(message));
  at(from).heard = steady_clock::now();
  changed_.notify_all();
  return to.messages.size() <= to.expected;
}

bool Mailroom::expect(int from, const Channel& channel) {
  const std::scoped_lock lock(mutex_);
  Box& to = box(from, channel);
  ++to.expected;
  return to.messages.size() >= to.expected;
}

Mailroom::Received Mailroom::receive(int from, const Channel& channel, const std::string& where, int named) {
  Lock lock(mutex_);
  Box& to = box(from, channel);
  const bool announced = to.expected > 0;
  if (!announced) ++to.expected;
  const bool was_here = !to.messages.empty();
  wait(lock, from, where, named, [&] { return !to.messages.empty(); });
  Received received{std::move(to.messages.front()), !announced && was_here};
  to.messages.pop_front();
  --to.expected;
  if (to.messages.empty() && to.expected == 0) boxes_.erase({channel, from});
  return received;
}

std::optional<Buffer> Mailroom::receive_for(milliseconds patience, Time begin, int from, const Channel& channel,
                                            const std::string& where) {
  Lock lock(mutex_);
  auto& messages = box(from, channel).messages;
  if (!wait(lock, from, patience, begin, where, from, [&] { return !messages.empty(); })) return std::nullopt;
  Buffer message = std::move(messages.front());
  messages.pop_front();
  return message;
}

std::optional<std::pair<int, Buffer>> Mailroom::receive_any(const Channel& channel,
                                                            const std::function<bool()>& stops) {
  Lock lock(mutex_);
  std::optional<std::pair<int, Buffer>> received;
  changed_.wait(lock, [&] {
    if (stops()) return true;
    for (auto at = boxes_.lower_bound({channel, 0}); at != boxes_.end() && at->first.first == channel; ++at) {
      if (at->second.messages.empty()) continue;
      received.emplace(at->first.second, std::move(at->second.messages.front()));
      at->second.messages.pop_front();
      if (at->second.messages.empty()) boxes_.erase(at);
      return true;
    }
    return false;
  });
  return received;
}

void Mailroom::wake() {
  const std::scoped_lock lock(mutex_);
  changed_.notify_all();
}

void Mailroom::drop(Kind kind, uint16_t instance) {
  const std::scoped_lock lock(mutex_);
  std::erase_if(boxes_, [&](const auto& item) {
    const Channel& channel = item.first.first;
    return channel.kind == kind && channel.instance == instance;
  });
}

void Mailroom::touch(int from) {
  const std::scoped_lock lock(mutex_);
  at(from).heard = steady_clock::now();
}

std::optional<Mailroom::Time> Mailroom::alive_at(int to) const {
  const std::scoped_lock lock(mutex_);
  std::optional<Time> latest;
  for (const Wait& wait : waits_) {
    if (wait.peer == to) continue;
    latest = std::max({latest.value_or(wait.begin), wait.begin, at(wait.peer).heard});
  }
  return latest;
}

void Mailroom::note_alive(int from, Time then) {
  const std::scoped_lock lock(mutex_);
  at(from).heard = std::max(at(from).heard, then);
}

void Mailroom::wait_for_room(int to, const Channel& lane, const std::string& where, int named) {
  Lock lock(mutex_);
  check_locked(where, to, named);
  uint64_t& used = at(to).on_lane[lane];
  wait(lock, to, where, named, [&] { return used < kRoom; });
  ++used;
}

void Mailroom::make_room(int to, const Channel& lane, uint64_t messages) {
  const std::scoped_lock lock(mutex_);
  at(to).heard = steady_clock::now();
  uint64_t& used = at(to).on_lane[lane];
  used -= std::min(used, messages);
  changed_.notify_all();
}

void Mailroom::note_sent(int to) {
  const std::scoped_lock lock(mutex_);
  ++at(to).sent;
}

void Mailroom::note_confirmed(int to, uint64_t messages) {
  const std::scoped_lock lock(mutex_);
  at(to).heard = at(to).confirmed_at = steady_clock::now();
  at(to).confirmed += messages;
  changed_.notify_all();
}

void Mailroom::wait_until_confirmed(int to, const std::string& where, int named) {
  Lock lock(mutex_);
  wait(lock, to, where, named, [&] { return at(to).confirmed == at(to).sent; });
}

void Mailroom::wait_until_confirmed(int to, const Farewell& farewell) {
  Lock lock(mutex_);
  const bool had_failed = failure_.has_value();
  while (at(to).confirmed != at(to).sent && !at(to).closed && (!failure_ || had_failed)) {
    const Time parts = at(to).confirmed_at + std::max(farewell.patience, kBetweenParts);
    const Time until =
        std::min(std::max(farewell.begin + farewell.patience, parts), farewell.begin + farewell.most);
    if (steady_clock::now() >= until) return;
    changed_.wait_until(lock, until);
  }
}

bool Mailroom::set_failure(const Failure& failure) {
  const std::scoped_lock lock(mutex_);
  if (failure_) return false;
  failure_ = failure;
  changed_.notify_all();
  return true;
}

std::optional<Failure> Mailroom::failure() const {
  const std::scoped_lock lock(mutex_);
  return failure_;
}

void Mailroom::set_left(int peer) {
  const std::scoped_lock lock(mutex_);
  at(peer).left = true;
  changed_.notify_all();
}

bool Mailroom::has_left(int peer) const {
  const std::scoped_lock lock(mutex_);
  return at(peer).left;
}

void Mailroom::set_closed(int peer) {
  const std::scoped_lock lock(mutex_);
  at(peer).closed = true;
  changed_.notify_all();
}

void Mailroom::end(const std::string& reason) {
  const std::scoped_lock lock(mutex_);
  if (!ended_) ended_ = reason;
  changed_.notify_all();
}

void Mailroom::check(const std::string& where, int peer, int named) const {
  const std::scoped_lock lock(mutex_);
  check_locked(where, peer, named);
}

void Mailroom::check_locked(const std::string& where, int peer, int named) const {
  if (failure_ && failure_->rank != rank_) throw_failure(*failure_, where, named);
  if (ended_) throw Error("{}: {}", where, *ended_);
  if (at(peer).left) throw PeerError("{}: {} is gone: connection closed", where, name_of_rank(named));
}

void Mailroom::wait(Lock& lock, int peer, const std::string& where, int named,
                    const std::function<bool()>& ready) {
  if (wait(lock, peer, part_to_wait(timeout_), steady_clock::now(), where, named, ready)) return;
  throw_silence(where, named, timeout_);
}

bool Mailroom::wait(Lock& lock, int peer, milliseconds patience, Time begin, const std::string& where,
                    int named, const std::function<bool()>& ready) {
  if (ready()) return true;
  struct Listed {
    std::list<Wait>& waits;
    std::list<Wait>::iterator mine;
    ~Listed() { waits.erase(mine); }
  } const listed{waits_, waits_.insert(waits_.end(), {.peer = peer, .begin = begin})};
  while (!ready()) {
    // Whoever leaves while it is waited for has failed. Where it could not tell this rank why, another one
    // will.
    if (at(peer).left) changed_.wait_for(lock, kLateWord, [&] { return failure_ || ended_ || ready(); });
    if (ready()) break;
    check_locked(where, peer, named);
    const auto until = std::max(begin, at(peer).heard) + patience;
    if (steady_clock::now() >= until) return false;
    changed_.wait_until(lock, until);
  }
  return true;
}

bool Mailroom::wait(steady_clock::time_point until, const std::function<bool()>& ready) {
  Lock lock(mutex_);
  return changed_.wait_until(lock, until, ready);
}

}  // namespace strait::tcp
