#pragma once

#include <chrono>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "strait/transport/socket.h"

namespace strait::cli {

/// What a path answers with.
struct ServedText {
  std::string type;     ///< `text/html; charset=utf-8`
  std::string content;  ///< the body
};

/// Answers GET requests of this machine's browsers for a few texts in memory, over HTTP/1.1 with one request a
/// connection. It listens at 127.0.0.1 alone, and a request has to name 127.0.0.1 or localhost as its host, so
/// that no other site reaches it through a name of its own. Requests have at most 8 KiB and have to come within
/// 10 seconds; of more than 64 connections the oldest goes. What is no such request is answered with an error
/// and closed. Visitors are read from in turns, and one that sends another MiB behind its request is cut off.
/// It has no thread: nobody is served but in serve().
class PageServer {
 public:
  /// Listens; port 0 is any free one. Throws Error with the reason alone.
  explicit PageServer(uint16_t port);
  ~PageServer();

  /// Where it listens.
  uint16_t port() const;

  /// What the path answers from now on; answers under way keep what they have.
  void set(const std::string& path, ServedText text);

  /// Serves whoever comes within that time; returns early when a signal has come.
  void serve(std::chrono::milliseconds time);

 private:
  class Visitor;
  void accept_all();
  void answer(Visitor& visitor);

  Socket listener_;
  std::map<std::string, std::shared_ptr<const ServedText>, std::less<>> texts_;
  std::list<Visitor> visitors_;  // in the order of their coming
};

}  // namespace strait::cli
