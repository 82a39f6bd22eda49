#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "strait/transport/c10d/connections.h"
#include "strait/transport/transport.h"

namespace strait {

/// A message that is being sent or received.
struct MessageUnderWay {
  Tag tag;
  int peer;
  std::string where;  ///< for an error
  Buffer buffer;
  c10::intrusive_ptr<c10d::Work> work;  // last: it goes before its memory
};

/// Messages that are being sent, in their order. A thread waits for them and frees those that have gone.
class SendQueue {
 public:
  /// `waits`: what the thread waits for; it outlives the queue.
  SendQueue(std::shared_ptr<Connections> connections, Waits& waits);

  /// Waits until all have gone or one cannot.
  ~SendQueue();
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  // These throw what the first message threw that could not be sent, then and ever after.

  /// Waits until few messages of the tag's channel are under way.
  void wait_for_room(Tag tag);
  void push(MessageUnderWay message);

  /// Waits until all have gone.
  void drain();
  void check();

  /// From any thread: lets the members above throw that error.
  void fail(std::exception_ptr error);

 private:
  void free_sent();

  std::shared_ptr<Connections> connections_;
  Waits& waits_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<MessageUnderWay> messages_;
  std::exception_ptr error_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace strait
