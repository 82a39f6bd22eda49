#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/gloo/connections.h"
#include "strait/transport/transport.h"

namespace strait {

/// Messages between the ranks of a group. A send returns at once; its memory is freed when it has gone.
/// Receives may be announced, so that a message comes as soon as it is sent and not when it is asked for.
class C10dTransport : public Transport {
 public:
  /// Boundary `b` leads to rank peers[b] and is called names[b].
  C10dTransport(std::shared_ptr<Connections> connections, std::vector<int> peers,
                std::vector<std::string> names);
  ~C10dTransport() override;
  C10dTransport(const C10dTransport&) = delete;
  C10dTransport& operator=(const C10dTransport&) = delete;

  void send(Tag tag, Buffer message) override;
  void expect(Tag tag, size_t bound) override;
  Buffer receive(Tag tag, size_t bound) override;
  void drain() override;
  void cancel() override;

 private:
  struct UnderWay {
    Tag tag;
    Buffer buffer;
    c10::intrusive_ptr<c10d::Work> work;
  };
  class Awaiting;
  std::string describe(Tag tag) const;
  int peer_of(Tag tag) const { return peers_[tag.boundary()]; }
  void free_sent();

  std::shared_ptr<Connections> connections_;
  std::vector<int> peers_;
  std::vector<std::string> names_;
  std::map<Tag, std::deque<UnderWay>> expected_;  ///< of the thread that receives

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<UnderWay> sent_;
  c10d::Work* awaited_ = nullptr;  ///< what receive() waits for
  std::exception_ptr error_;
  bool stopped_ = false;
  std::thread thread_;  ///< waits for sends, in their order
};

}  // namespace strait
