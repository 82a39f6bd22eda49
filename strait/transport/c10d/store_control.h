#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strait/transport/c10d/connections.h"
#include "strait/transport/c10d/lookout.h"
#include "strait/transport/control.h"

namespace strait {

/// Messages as keys of the store in which the ranks have met, looked for and written by a thread, which alone
/// waits for the store.
class StoreControl : public ControlChannel {
 public:
  /// `number` tells apart the channels that the ranks make one after another.
  StoreControl(std::shared_ptr<Connections> connections, int number, std::vector<int> peers,
               const std::string& what, ControlHandler handle);
  ~StoreControl() override;
  StoreControl(const StoreControl&) = delete;
  StoreControl& operator=(const StoreControl&) = delete;

  void post(const ControlMessage& message) override;
  void deliver(const ControlMessage& message) override;

 private:
  class Mailbox;
  std::shared_ptr<Connections> connections_;
  std::vector<int> peers_;
  std::string what_;
  std::shared_ptr<Mailbox> mailbox_;  ///< the thread's too, which may outlive this
  Lookout lookout_;
};

}  // namespace strait
