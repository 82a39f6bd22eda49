#include "strait/transport/tcp/tcp_transport.h"

#include "strait/base/error.h"

namespace strait::tcp {

TcpTransport::TcpTransport(std::shared_ptr<Mesh> mesh, uint16_t instance, std::vector<int> peers,
                           std::vector<std::string> names)
    : mesh_(std::move(mesh)), instance_(instance), peers_(std::move(peers)), names_(std::move(names)) {
  for (const int peer : peers_) {
    if (peer >= 0) mesh_->want(peer);
  }
}

TcpTransport::~TcpTransport() { mesh_->mailroom().drop(Kind::frame, instance_); }

std::string TcpTransport::where(Tag tag) const {
  return fmt::format("rank {}, boundary {}, {}, micro-batch {}", mesh_->rank(), names_[tag.boundary()],
                     to_string(tag.direction()), tag.micro_batch());
}

void TcpTransport::send(Tag tag, Buffer message) {
  mesh_->send(peer_of(tag), channel_of(tag), std::move(message), where(tag), peer_of(tag));
}

void TcpTransport::expect(Tag tag, size_t /*bound*/) { mesh_->expect(peer_of(tag), channel_of(tag)); }

Buffer TcpTransport::receive(Tag tag, size_t bound) {
  const std::string where = this->where(tag);
  Buffer message = mesh_->receive(peer_of(tag), channel_of(tag), where, peer_of(tag));
  if (message.size() > bound) {
    throw WireError("{}: a message of {} bytes, expected at most {}", where, message.size(), bound);
  }
  if (frame_size(message.bytes()) != message.size()) {
    throw WireError("{}: a frame of {} bytes in a message of {}", where, frame_size(message.bytes()),
                    message.size());
  }
  return message;
}

void TcpTransport::drain() {
  for (size_t boundary = 0; boundary < peers_.size(); ++boundary) {
    if (peers_[boundary] < 0) continue;
    mesh_->drain(peers_[boundary], fmt::format("rank {}, boundary {}", mesh_->rank(), names_[boundary]));
  }
}

void TcpTransport::cancel() { mesh_->mailroom().end(kGivenUp); }

}  // namespace strait::tcp
