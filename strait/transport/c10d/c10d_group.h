#pragma once

#include "strait/transport/c10d/connections.h"
#include "strait/transport/group.h"

namespace strait {

/// A group over connections. All that it sends goes from rank to rank by tag.
class C10dGroup : public Group {
 public:
  explicit C10dGroup(std::shared_ptr<Connections> connections) : connections_(std::move(connections)) {}

  /// Collective: tells the others over the connections what this rank's words can be known by.
  void exchange_tokens();

  int rank() const override { return connections_->rank(); }
  int size() const override { return connections_->size(); }
  std::vector<std::string> gather(const std::string& mine) override;
  void send(const at::Tensor& tensor, int to, const std::string& what) override;
  void receive(at::Tensor& tensor, int from, const std::string& what) override;
  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override;
  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override;
  void fail(const Failure& failure) override { connections_->fail(failure); }

 private:
  std::shared_ptr<Connections> connections_;
  int controls_ = 0;  ///< channels made so far
};

}  // namespace strait
