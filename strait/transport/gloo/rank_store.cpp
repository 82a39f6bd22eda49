#include "strait/transport/gloo/rank_store.h"

#include <algorithm>
#include <thread>

#include "strait/base/error.h"
#include "strait/transport/c10d/failure_board.h"

namespace strait {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(5);

}  // namespace

void RankStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  client_.set(key, {reinterpret_cast<const char*>(value.data()), value.size()});
}

std::vector<uint8_t> RankStore::get(const std::string& key) {
  wait({key});
  const auto value = client_.get(key);
  STRAIT_CHECK(value.has_value(), "the store has lost {}", key);
  return {value->begin(), value->end()};
}

bool RankStore::check(const std::vector<std::string>& keys) {
  return std::ranges::all_of(keys, [&](const auto& key) { return client_.has(key); });
}

void RankStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  const auto end = std::chrono::steady_clock::now() + std::min(timeout, timeout_);
  for (const auto& key : keys) {
    while (!client_.has(key)) {
      if (client_.has(kGoneKey)) throw Error("a rank is gone");
      if (std::chrono::steady_clock::now() >= end) throw Error("timed out waiting for {}", key);
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

bool RankStore::deleteKey(const std::string& key) { throw InternalError("nobody deletes {}", key); }

int64_t RankStore::getNumKeys() { throw InternalError("nobody counts keys"); }

}  // namespace strait
