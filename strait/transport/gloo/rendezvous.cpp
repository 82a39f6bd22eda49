#include "strait/transport/gloo/rendezvous.h"

#include <c10/util/Logging.h>

#include <algorithm>
#include <future>
#include <mutex>
#include <numeric>
#include <sstream>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "strait/base/clock.h"
#include "strait/base/text.h"
#include "strait/transport/gloo/rank_store.h"
#include "strait/transport/store_protocol.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using store::bytes_of;
using store::kFailureKey;
using store::kGoneKey;
using store::text_of;

constexpr int kOnlyFatal = 3;  // of LibTorch's log: what goes wrong is said once, in the error
constexpr milliseconds kPoll(20);
constexpr milliseconds kLook(250);
constexpr milliseconds kWordLimit(1000);    // how long a rank looks for the reason of a broken connection
constexpr milliseconds kLingerLimit(5000);  // how long the store outlives a failure for the others to read it
constexpr int kParts = 10;                  // both at most this part of the timeout
constexpr const char* kNoToken = "-";
constexpr size_t kMaxReason = 2000;

std::string handshake_key(int rank) { return fmt::format("hello/{}", rank); }

/// Runs `work` beside this thread and gives up on it after the limit: a store whose host has gone may never
/// answer, and nothing then ends the call. Calls `meanwhile` every kLook until then.
template <class Result>
std::optional<Result> within(
    milliseconds limit, std::function<Result()> work, const std::function<void()>& meanwhile = [] {}) {
  const auto promise = std::make_shared<std::promise<Result>>();
  auto result = promise->get_future();
  std::thread([promise, work = std::move(work)] {
    try {
      promise->set_value(work());
    } catch (const std::exception&) {
      promise->set_exception(std::current_exception());
    }
  }).detach();
  const auto end = std::chrono::steady_clock::now() + limit;
  while (result.wait_until(std::min(end, std::chrono::steady_clock::now() + kLook)) !=
         std::future_status::ready) {
    if (std::chrono::steady_clock::now() >= end) return std::nullopt;
    meanwhile();
  }
  try {
    return result.get();
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// Who has not come, for two threads.
class Missing {
 public:
  explicit Missing(int size) : ranks_(static_cast<size_t>(size)) { std::iota(ranks_.begin(), ranks_.end(), 0); }
  std::vector<int> ranks() const {
    const std::scoped_lock lock(mutex_);
    return ranks_;
  }
  void set(std::vector<int> ranks) {
    const std::scoped_lock lock(mutex_);
    ranks_ = std::move(ranks);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int> ranks_;
};

bool has_failed(c10d::Store& store) { return store.check({kFailureKey}) || store.check({kGoneKey}); }

/// Waits for all ranks, until the patience of one of them is at its end: then it is for all. Gives what they
/// said, or nothing.
std::vector<std::string> attendance(c10d::Store& store, int size, milliseconds patience, Missing& missing) {
  const Stopwatch watch;
  while (true) {
    auto ranks = missing.ranks();
    std::erase_if(ranks, [&](int rank) { return store.check({handshake_key(rank)}); });
    missing.set(ranks);
    if (ranks.empty()) break;
    const bool over = watch.seconds() * 1e3 >= static_cast<double>(patience.count());
    if (over || has_failed(store)) return {};
    std::this_thread::sleep_for(kPoll);
  }
  std::vector<std::string> handshakes;
  handshakes.reserve(static_cast<size_t>(size));
  for (int rank = 0; rank < size; ++rank) handshakes.push_back(text_of(store.get(handshake_key(rank))));
  return handshakes;
}

}  // namespace

Rendezvous::Rendezvous(Membership membership, milliseconds timeout, const WaitingFor& waiting)
    : membership_(std::move(membership)), timeout_(timeout) {
  static std::once_flag quiet;  // the ranks of a process may be threads
  std::call_once(quiet, [] {
    FLAGS_caffe2_log_level = kOnlyFatal;
    c10::UpdateLoggingLevelsFromFlags();
  });
  if (membership_.store_host == StoreHost::torchrun) {
    open_torchruns_store();
  } else {
    open_store(waiting);
  }
}

void Rendezvous::open_store(const WaitingFor& waiting) {
  if (membership_.serves_store()) {
    try {
      server_ = std::make_unique<StoreServer>(membership_.master_address, membership_.master_port,
                                              membership_.size, membership_.attempt);
    } catch (const Error& error) {
      throw Error("rank 0 cannot listen at {}: {}", membership_.rendezvous_endpoint(), error.what());
    }
  }
  store_ = c10::make_intrusive<RankStore>(membership_, timeout_, [&] { waiting({0}); });
}

void Rendezvous::open_torchruns_store() {
  c10d::TCPStoreOptions options;
  options.port = membership_.master_port;
  options.waitWorkers = false;
  options.timeout = timeout_;
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(membership_.master_address, options);
    store_ = c10::make_intrusive<c10d::PrefixStore>("strait/" + membership_.attempt, store);
  } catch (const std::exception&) {
    throw Error("rank {}: torchrun does not answer at {}", membership_.rank, membership_.rendezvous_endpoint());
  }
  const std::string key = fmt::format("taken/{}", membership_.rank);
  const auto taken = within<int64_t>(timeout_ * 3 / 4, [store = store_, key] { return store->add(key, 1); });
  if (!taken) {
    throw Error("rank {}: torchrun does not answer at {}", membership_.rank, membership_.rendezvous_endpoint());
  }
  if (*taken != 1) {
    throw InputError("rank {}: another process has taken this rank of the group at {}", membership_.rank,
                     membership_.rendezvous_endpoint());
  }
}

std::vector<std::string> Rendezvous::exchange(const std::string& handshake, const WaitingFor& waiting) {
  const milliseconds patience = timeout_ - limit(kWordLimit);
  const auto missing = std::make_shared<Missing>(membership_.size);
  const auto handshakes = within<std::vector<std::string>>(
      timeout_,
      [=, store = store_, rank = membership_.rank, size = membership_.size] {
        store->set(handshake_key(rank), bytes_of(handshake));
        return attendance(*store, size, patience, *missing);
      },
      [&] {
        const auto ranks = missing->ranks();
        if (!ranks.empty()) waiting(ranks);
      });
  if (!handshakes) {
    throw Error("rank {}: rank 0 at {} no longer answers", membership_.rank, membership_.rendezvous_endpoint());
  }
  if (!handshakes->empty()) return *handshakes;
  const std::string reason = why_not_all(missing->ranks());
  leave_word({.rank = membership_.rank, .diverged = false, .reason = reason});
  linger();
  throw Error("rank {}: {}", membership_.rank, reason);
}

std::string Rendezvous::why_not_all(const std::vector<int>& missing) {
  const auto failure = word();
  if (failure && failure->reason == kGoneReason)
    return fmt::format("rank {} came, but {}", failure->rank, kGoneReason);
  std::vector<std::string> names;
  names.reserve(missing.size());
  for (const int rank : missing) names.push_back(std::to_string(rank));
  return fmt::format("of {} ranks these did not come within {} s: {}", membership_.size,
                     timeout_.count() / 1000, list_of(names));
}

std::string Rendezvous::to_text(const Failure& failure) const {
  const std::string& token = tokens_.empty() ? kNoToken : tokens_[static_cast<size_t>(membership_.rank)];
  return fmt::format("{} {} {} {}", failure.rank, failure.diverged ? 1 : 0, token,
                     failure.reason.substr(0, kMaxReason));
}

std::optional<Failure> Rendezvous::failure_of(const std::string& text) const {
  std::istringstream in(text);
  Failure failure;
  std::string token;
  if (!(in >> failure.rank >> failure.diverged >> token) || failure.rank < 0 ||
      failure.rank >= membership_.size) {
    return std::nullopt;
  }
  in.get();
  std::getline(in, failure.reason, '\0');
  failure.reason.resize(std::min(failure.reason.size(), kMaxReason));
  if (tokens_.empty()) {
    failure.diverged = false;
  } else if (token != tokens_[static_cast<size_t>(failure.rank)]) {
    return std::nullopt;
  }
  return failure;
}

milliseconds Rendezvous::limit(milliseconds usual) const { return std::min(usual, timeout_ / kParts); }

void Rendezvous::leave_word(const Failure& failure) {
  within<bool>(limit(kWordLimit), [store = store_, text = to_text(failure)] {
    if (!store->check({kFailureKey})) store->set(kFailureKey, bytes_of(text));
    return true;
  });
}

std::optional<Failure> Rendezvous::word() {
  const milliseconds patience = limit(kWordLimit) / 2;
  struct Word {
    std::string gone;
    std::string failure;
  };
  const auto word = within<Word>(limit(kWordLimit), [store = store_, patience] {
    const Stopwatch watch;
    while (!has_failed(*store) && watch.seconds() * 1e3 < static_cast<double>(patience.count())) {
      std::this_thread::sleep_for(kPoll);
    }
    const auto at = [&](const char* key) { return store->check({key}) ? text_of(store->get(key)) : ""; };
    return Word{at(kGoneKey), at(kFailureKey)};
  });
  if (!word) return std::nullopt;
  if (word->gone.empty()) return failure_of(word->failure);
  return Failure{.rank = std::atoi(word->gone.c_str()), .diverged = false, .reason = kGoneReason};
}

void Rendezvous::linger() {
  if (server_) server_->wait_until_left(limit(kLingerLimit));
}

}  // namespace strait
