#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "strait/transport/membership.h"
#include "strait/transport/socket.h"

namespace strait {

namespace store {
enum class Operation : uint8_t;
}

/// A rank's connection to the StoreServer of its group. Threads may share it.
class StoreClient {
 public:
  /// Connects to the master's address, trying again until the timeout is over, which bounds every later call
  /// too. Throws RankTaken when another process has taken this rank, and Error when nothing answers, or
  /// something else, or the store of another attempt.
  StoreClient(
      const Membership& membership, std::chrono::milliseconds timeout,
      const std::function<void()>& waiting = [] {});
  ~StoreClient();  ///< takes leave
  StoreClient(const StoreClient&) = delete;
  StoreClient& operator=(const StoreClient&) = delete;

  // These throw Error when the store does not answer, then and ever after.

  /// Sets the value of a key.
  void set(std::string_view key, std::string_view value);

  /// The value of a key, or nothing where it has none.
  std::optional<std::string> get(std::string_view key);

  /// Whether the key has a value.
  bool has(std::string_view key);
  int64_t add(std::string_view key, int64_t number);  ///< gives the sum

 private:
  enum class Reaction { none, foreign, welcome };
  Reaction greet(const Membership& membership, Deadline deadline);
  struct Reply {
    bool found = false;
    std::string value;
  };
  Reply ask(store::Operation operation, std::string_view key, std::string_view value = {});

  std::chrono::milliseconds timeout_;
  std::mutex mutex_;
  std::optional<Socket> socket_;  ///< none when the connection is of no use any more
};

}  // namespace strait
