#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/gloo/presence.h"
#include "strait/transport/gloo/store_admission.h"
#include "strait/transport/gloo/store_connection.h"
#include "strait/transport/gloo/store_table.h"

namespace strait {

/// Keys and values for the ranks of a group: where they find each other before they are connected, and leave
/// word when they end. Serves from a thread of its own.
///
/// Each rank is let in once, over one connection, when it names the same attempt. Once all have come the store
/// no longer listens. Who connects before and does not say who it is within a moment is turned away, and so is
/// who says or sends anything else than store_protocol.h has, or too much of it. No other connection suffers
/// from one.
class StoreServer {
 public:
  /// What one who connects may take.
  struct Limits {
    std::chrono::milliseconds greeting{5000};  ///< how long one who has connected may take to say who it is
    size_t strangers = 64;                     ///< those who have not said it yet; of more the first goes
    size_t bytes = size_t{256} << 20;          ///< of all keys and values
  };

  /// Listens at the address of this machine; port 0: any free one. Throws Error with the reason why it cannot.
  StoreServer(const std::string& host, uint16_t port, int ranks, std::string attempt)
      : StoreServer(host, port, ranks, std::move(attempt), Limits()) {}

  /// The same with other limits.
  StoreServer(const std::string& host, uint16_t port, int ranks, std::string attempt, Limits limits);
  ~StoreServer();  ///< closes all connections at once
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  /// The port at which it listens.
  uint16_t port() const { return port_; }

  /// Waits until at most one rank is connected, or for the limit.
  void wait_until_left(std::chrono::milliseconds limit) { present_.wait_for_at_most(1, limit); }

 private:
  void serve();
  bool wait(std::vector<short>& events);
  void serve_one(StoreConnection& connection, short events);
  void take(StoreConnection& connection, const std::string& message);
  void take_greeting(StoreConnection& connection, const std::string& message);
  void take_request(StoreConnection& connection, const std::string& message);
  void accept_all();
  void drop_oldest_stranger();
  void drop_strangers();
  void drop_closed();

  Limits limits_;
  Socket listener_;
  uint16_t port_;
  Socket wake_;  ///< readable when the thread is to end
  StoreAdmission admission_;
  StoreTable table_;
  std::vector<StoreConnection> connections_;  ///< in the order in which they came
  Presence present_;                          ///< ranks that are connected
  std::thread thread_;
};

}  // namespace strait
