#pragma once

#include <memory>
#include <string>
#include <vector>

#include "strait/transport/tcp/mesh.h"
#include "strait/transport/transport.h"

namespace strait::tcp {

/// Frames between the ranks of a mesh. A send returns at once, unless the receiver is far behind. What comes
/// waits in memory until it is asked for.
class TcpTransport : public Transport {
 public:
  /// Boundary `b` leads to rank peers[b] and is called names[b]. `instance` tells apart the transports that the
  /// ranks make one after another.
  TcpTransport(std::shared_ptr<Mesh> mesh, uint16_t instance, std::vector<int> peers,
               std::vector<std::string> names);
  ~TcpTransport() override;
  TcpTransport(const TcpTransport&) = delete;
  TcpTransport& operator=(const TcpTransport&) = delete;

  void send(Tag tag, Buffer message) override;
  void expect(Tag tag, size_t bound) override;
  Buffer receive(Tag tag, size_t bound) override;
  void drain() override;
  void cancel() override;
  void check(Tag tag) const override { mesh_->mailroom().check(where(tag), peer_of(tag), peer_of(tag)); }

  /// TLS, or the operating system, vouches for what comes.
  FrameCheck frame_check() const override { return FrameCheck::trust; }

 private:
  Channel channel_of(Tag tag) const {
    return {.kind = Kind::frame, .instance = instance_, .tag = static_cast<uint32_t>(tag.value())};
  }
  int peer_of(Tag tag) const { return peers_[tag.boundary()]; }
  std::string where(Tag tag) const;

  std::shared_ptr<Mesh> mesh_;
  uint16_t instance_;
  std::vector<int> peers_;
  std::vector<std::string> names_;
};

}  // namespace strait::tcp
