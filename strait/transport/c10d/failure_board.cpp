#include "strait/transport/c10d/failure_board.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "strait/base/clock.h"
#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/failure.h"

namespace strait {
namespace {

using std::chrono::milliseconds;
using store::bytes_of;
using store::text_of;

constexpr milliseconds kBetweenLooksForWord(20);
constexpr milliseconds kWordLimit(1000);  // how long a rank looks for the reason of a broken connection
constexpr const char* kNoToken = "-";

/// What LibTorch says, without the place in its source.
std::string reason_in(const std::string& message) {
  for (const char* known : {"Connection closed by peer", "Connection reset by peer", "Broken pipe"}) {
    if (message.find(known) != std::string::npos) return "connection closed";
  }
  return first_line(message);
}

bool has_word_in(c10d::Store& store) { return store.check({kFailureKey}) || store.check({kGoneKey}); }

}  // namespace

FailureBoard::FailureBoard(c10::intrusive_ptr<c10d::Store> store, int rank, int ranks, milliseconds timeout)
    : store_(std::move(store)), rank_(rank), ranks_(ranks), timeout_(timeout) {}

std::string FailureBoard::to_text(const Failure& failure) const {
  const std::string& token = tokens_.empty() ? kNoToken : tokens_[static_cast<size_t>(rank_)];
  return fmt::format("{} {} {} {}", failure.rank, failure.diverged ? 1 : 0, token,
                     failure.reason.substr(0, kMaxReason));
}

std::optional<Failure> FailureBoard::failure_of(const std::string& text) const {
  std::istringstream in(text);
  Failure failure;
  std::string token;
  if (!(in >> failure.rank >> failure.diverged >> token) || failure.rank < 0 || failure.rank >= ranks_) {
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

void FailureBoard::leave(const Failure& failure) const {
  within<bool>(limited(kWordLimit, timeout_), [store = store_, text = to_text(failure)] {
    if (!store->check({kFailureKey})) store->set(kFailureKey, bytes_of(text));
    return true;
  });
}

std::optional<Failure> FailureBoard::read() const {
  const milliseconds limit = limited(kWordLimit, timeout_);
  struct Word {
    std::string gone;
    std::string failure;
  };
  const auto word = within<Word>(limit, [store = store_, patience = limit / 2] {
    const Stopwatch watch;
    while (!has_word_in(*store) && watch.seconds() * 1e3 < static_cast<double>(patience.count())) {
      std::this_thread::sleep_for(kBetweenLooksForWord);
    }
    const auto at = [&](const char* key) { return store->check({key}) ? text_of(store->get(key)) : ""; };
    return Word{at(kGoneKey), at(kFailureKey)};
  });
  if (!word) return std::nullopt;
  if (word->gone.empty()) return failure_of(word->failure);
  return Failure{.rank = std::atoi(word->gone.c_str()), .diverged = false, .reason = kGoneReason};
}

bool FailureBoard::has_word() const { return has_word_in(*store_); }

void FailureBoard::throw_word(const std::string& where, int peer) const {
  const auto failure = read();
  if (!failure || failure->rank == rank_) return;
  throw_failure(*failure, where, peer);
}

void FailureBoard::explain(const std::string& where, int peer, const std::string& message) const {
  throw_word(where, peer);
  if (message.find("imed out") != std::string::npos) throw_silence(where, peer, timeout_);
  throw Error("{}: {} is gone: {}", where, name_of_rank(peer), reason_in(message));
}

}  // namespace strait
