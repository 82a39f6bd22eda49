#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strait/transport/group.h"
#include "strait/transport/tcp/mesh.h"

namespace strait::tcp {

/// A group over a mesh.
class TcpGroup : public Group {
 public:
  explicit TcpGroup(std::shared_ptr<Mesh> mesh) : mesh_(std::move(mesh)) {}

  int rank() const override { return mesh_->rank(); }
  int size() const override { return mesh_->ranks(); }
  std::vector<std::string> gather(const std::string& mine) override;
  void send(const at::Tensor& tensor, int to, const std::string& what) override;
  void receive(at::Tensor& tensor, int from, const std::string& what) override;
  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override;
  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override;
  std::vector<LinkStatus> links() const override { return mesh_->links(); }
  void fail(const Failure& failure) override { mesh_->fail(failure); }

 private:
  std::shared_ptr<Mesh> mesh_;
  uint16_t transports_ = 0;  ///< made so far
  uint16_t controls_ = 0;
};

}  // namespace strait::tcp
