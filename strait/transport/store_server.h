#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/socket.h"

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
  void wait_until_left(std::chrono::milliseconds limit);

 private:
  struct Connection {
    Socket socket;
    Deadline greeted_by;
    int rank = -1;  ///< -1: it has not said
    bool open = true;
    std::string in = {};   ///< the beginning of a request
    std::string out = {};  ///< the rest of a reply; until it has gone no request is read
  };
  void serve();
  int wait();
  void accept_all();
  void drop_oldest_stranger();
  void drop_strangers();
  void drop_closed();
  void move_bytes(Connection& connection, short events);
  void read(Connection& connection);
  void write(Connection& connection);
  size_t wanted(const Connection& connection) const;
  void take_greeting(Connection& connection);
  void take_request(Connection& connection);
  void set(const std::string& key, std::string value, Connection& connection);
  size_t strangers() const;

  std::string attempt_;
  Limits limits_;
  Socket listener_;
  uint16_t port_;
  Socket wake_;                          ///< readable when the thread is to end
  std::vector<bool> came_;               ///< by rank
  size_t missing_;                       ///< ranks that have not come
  std::vector<Connection> connections_;  ///< in the order in which they came
  std::vector<short> events_;            ///< of each connection
  std::map<std::string, std::string> values_;
  size_t bytes_ = 0;  ///< of values_
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t present_ = 0;  ///< ranks that are connected
  std::thread thread_;
};

}  // namespace strait
