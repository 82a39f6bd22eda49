#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/control.h"
#include "strait/transport/tcp/mesh.h"

namespace strait::tcp {

/// A control channel over a mesh, with a thread that hands over what comes.
class TcpControl : public ControlChannel {
 public:
  /// `instance` tells apart the channels that the ranks make one after another.
  TcpControl(std::shared_ptr<Mesh> mesh, uint16_t instance, std::vector<int> peers, std::string what,
             ControlHandler handle);

  /// The handler is not called from now on.
  ~TcpControl() override;
  TcpControl(const TcpControl&) = delete;
  TcpControl& operator=(const TcpControl&) = delete;

  void post(const ControlMessage& message) override;
  void deliver(const ControlMessage& message) override;

 private:
  void hand_over();
  void send(int to, const ControlMessage& message, bool confirmed);

  std::shared_ptr<Mesh> mesh_;
  uint16_t instance_;
  std::vector<int> peers_;
  std::string what_;
  ControlHandler handle_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace strait::tcp
