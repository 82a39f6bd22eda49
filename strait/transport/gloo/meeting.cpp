#include "strait/transport/gloo/meeting.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <future>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "strait/base/clock.h"
#include "strait/base/text.h"

namespace strait {
namespace {

using std::chrono::milliseconds;

constexpr const char* kFailureKey = "failure";
constexpr const char* kReadKey = "read";  // counts hellos read and words left
constexpr int kOnlyFatal = 3;             // of LibTorch's log: what goes wrong is said once, in the error
constexpr milliseconds kPoll(20);
constexpr milliseconds kWordLimit(1000);    // how long a rank looks for the reason of a broken connection
constexpr milliseconds kLingerLimit(5000);  // how long the store outlives a failure for the others to read it
constexpr int kParts = 10;                  // both at most this part of the timeout

std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }
std::string text_of(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

std::string hello_key(int rank) { return fmt::format("hello/{}", rank); }

/// Why a port cannot be listened at; the first line of what LibTorch says, which has a sentence for each
/// address.
std::string listen_reason(const std::exception& error) {
  const std::string message = error.what();
  if (message.find("Address already in use") != std::string::npos) return "another program listens there";
  return message.substr(0, message.find('\n'));
}

std::string to_text(const Failure& failure) {
  return fmt::format("{} {} {}", failure.rank, failure.diverged ? 1 : 0, failure.reason);
}

std::optional<Failure> failure_of(const std::string& text) {
  Failure failure;
  int diverged = 0;
  int used = 0;
  if (std::sscanf(text.c_str(), "%d %d %n", &failure.rank, &diverged, &used) != 2) return std::nullopt;
  failure.diverged = diverged == 1;
  failure.reason = text.substr(static_cast<size_t>(used));
  return failure;
}

/// Runs `work` beside this thread and gives up on it after the limit: a store whose host has gone may never
/// answer, and nothing then ends the call.
template <class Result>
std::optional<Result> within(milliseconds limit, std::function<Result()> work) {
  const auto promise = std::make_shared<std::promise<Result>>();
  auto result = promise->get_future();
  std::thread([promise, work = std::move(work)] {
    try {
      promise->set_value(work());
    } catch (const std::exception&) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  if (result.wait_for(limit) != std::future_status::ready) return std::nullopt;
  try {
    return result.get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Who has come, and what they said; that only when all have.
struct Attendance {
  std::vector<std::string> hellos;
  std::vector<std::string> missing;
};

/// Waits for all ranks, until the patience of one of them is at its end: then it is for all.
Attendance attendance(c10d::Store& store, int size, milliseconds patience) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) keys.push_back(hello_key(rank));
  const Stopwatch watch;
  while (!store.check(keys) && !store.check({kFailureKey}) &&
         watch.seconds() * 1e3 < static_cast<double>(patience.count())) {
    std::this_thread::sleep_for(kPoll);
  }
  Attendance found;
  for (int rank = 0; rank < size; ++rank) {
    if (!store.check({hello_key(rank)})) found.missing.push_back(std::to_string(rank));
  }
  if (!found.missing.empty()) return found;
  for (const auto& key : keys) found.hellos.push_back(text_of(store.get(key)));
  store.add(kReadKey, 1);
  return found;
}

}  // namespace

Meeting::Meeting(Membership membership, milliseconds timeout)
    : membership_(std::move(membership)), timeout_(timeout) {
  open_store();
  const std::string key = fmt::format("taken/{}", membership_.rank);
  const auto taken = within<int64_t>(timeout_ * 3 / 4, [store = store_, key] { return store->add(key, 1); });
  if (!taken) {
    throw Error("rank {}: what listens at {} does not answer as rank 0 would", membership_.rank, place());
  }
  if (*taken != 1) {
    throw InputError("rank {}: another process has taken this rank of the group at {}", membership_.rank,
                     place());
  }
}

void Meeting::open_store() {
  c10d::TCPStoreOptions options;
  options.port = membership_.master_port;
  options.isServer = membership_.rank == 0 && !membership_.launcher_serves_store;
  options.waitWorkers = false;
  options.timeout = timeout_;
  FLAGS_caffe2_log_level = kOnlyFatal;
  c10::UpdateLoggingLevelsFromFlags();
  const Stopwatch watch;
  while (!store_) {
    try {
      const auto store = c10::make_intrusive<c10d::TCPStore>(membership_.master_address, options);
      store_ = c10::make_intrusive<c10d::PrefixStore>("strait/" + membership_.attempt, store);
    } catch (const std::exception& error) {
      if (options.isServer) throw Error("rank 0 cannot listen at {}: {}", place(), listen_reason(error));
      // It does not use the whole of its time.
      if (watch.seconds() * 1e3 + 2 * kPoll.count() > static_cast<double>(timeout_.count())) {
        throw Error("rank {}: nothing answers at {}, where rank 0 should be, for {} s", membership_.rank,
                    place(), timeout_.count() / 1000);
      }
      std::this_thread::sleep_for(kPoll);
    }
  }
}

std::string Meeting::place() const {
  return fmt::format("{}:{} (MASTER_ADDR:MASTER_PORT)", membership_.master_address, membership_.master_port);
}

std::vector<std::string> Meeting::exchange(const std::string& hello) {
  const milliseconds patience = timeout_ - limit(kWordLimit);
  const auto found = within<Attendance>(
      timeout_, [store = store_, hello, patience, rank = membership_.rank, size = membership_.size] {
        store->set(hello_key(rank), bytes_of(hello));
        return attendance(*store, size, patience);
      });
  if (!found) throw Error("rank {}: rank 0 at {} does not answer any more", membership_.rank, place());
  if (found->missing.empty()) return found->hellos;
  const std::string reason = fmt::format("of {} ranks these did not come within {} s: {}", membership_.size,
                                         timeout_.count() / 1000, list_of(found->missing));
  leave_word({.rank = membership_.rank, .diverged = false, .reason = reason});
  linger(true);
  throw Error("rank {}: {}", membership_.rank, reason);
}

milliseconds Meeting::limit(milliseconds usual) const { return std::min(usual, timeout_ / kParts); }

void Meeting::leave_word(const Failure& failure) {
  within<bool>(limit(kWordLimit), [store = store_, text = to_text(failure)] {
    if (!store->check({kFailureKey})) store->set(kFailureKey, bytes_of(text));
    store->add(kReadKey, 1);
    return true;
  });
}

std::optional<Failure> Meeting::word() {
  const milliseconds patience = limit(kWordLimit) / 2;
  const auto text = within<std::string>(limit(kWordLimit), [store = store_, patience] {
    const Stopwatch watch;
    while (!store->check({kFailureKey}) && watch.seconds() * 1e3 < static_cast<double>(patience.count())) {
      std::this_thread::sleep_for(kPoll);
    }
    return store->check({kFailureKey}) ? text_of(store->get(kFailureKey)) : std::string();
  });
  return text ? failure_of(*text) : std::nullopt;
}

void Meeting::linger(bool after_failure) {
  if (membership_.rank != 0 || membership_.launcher_serves_store) return;
  const milliseconds patience = limit(kLingerLimit);
  within<bool>(patience, [store = store_, patience, count = (after_failure ? 2 : 1) * membership_.size] {
    const Stopwatch watch;
    while (store->add(kReadKey, 0) < count && watch.seconds() * 1e3 < static_cast<double>(patience.count())) {
      std::this_thread::sleep_for(kPoll);
    }
    return true;
  });
}

}  // namespace strait
