#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "strait/transport/c10d/connections.h"
#include "strait/transport/gloo/rendezvous.h"

namespace strait {

/// Connections over a Gloo of the group's own, which ends with them.
class GlooConnections : public Connections {
 public:
  /// Connects through the rendezvous's store. Throws Error when that fails.
  static std::shared_ptr<GlooConnections> open(const Membership& membership,
                                               std::unique_ptr<Rendezvous> rendezvous);
  ~GlooConnections() override;

 protected:
  /// Closes all connections.
  void break_off(const Failure& failure) override;

 private:
  class Gloo;
  GlooConnections(c10::intrusive_ptr<Gloo> gloo, std::unique_ptr<Rendezvous> rendezvous);

  c10::intrusive_ptr<Gloo> gloo_;
  std::unique_ptr<Rendezvous> rendezvous_;
};

}  // namespace strait
