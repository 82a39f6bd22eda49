#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strait/transport/c10d/connections.h"
#include "strait/transport/send_queue.h"
#include "strait/transport/transport.h"

namespace strait {

/// Where our tags begin: the highest quarter of those that c10d takes. Below are a user's own messages (tag 0
/// unless said otherwise) and those that LibTorch counts up itself.
inline constexpr int32_t kFirstTag = 1 << 30;

/// A message that is being sent or received.
struct MessageUnderWay {
  Tag tag;
  int peer;
  std::string where;  ///< for an error
  Buffer buffer;
  c10::intrusive_ptr<c10d::Work> work;  // last: it goes before its memory
};

/// Messages between the ranks of a group. A send returns at once; its memory is freed when it has gone.
/// Receives may be announced, so that a message comes as soon as it is sent and not when it is asked for.
class C10dTransport : public Transport {
 public:
  /// Boundary `b` leads to rank peers[b] and is called names[b].
  C10dTransport(std::shared_ptr<Connections> connections, std::vector<int> peers,
                std::vector<std::string> names);

  void send(Tag tag, Buffer message) override;
  void expect(Tag tag, size_t bound) override;
  Buffer receive(Tag tag, size_t bound) override;
  void drain() override { sends_.drain(); }
  void cancel() override;

 private:
  MessageUnderWay begin(Tag tag, Buffer buffer, bool sends) const;
  void wait_for(const MessageUnderWay& message);

  std::shared_ptr<Connections> connections_;
  std::vector<int> peers_;
  std::vector<std::string> names_;
  Waits waits_;
  std::map<Tag, std::deque<MessageUnderWay>> expected_;  ///< of the thread that receives
  SendQueue<MessageUnderWay> sends_;                     // last: its thread uses the others
};

}  // namespace strait
