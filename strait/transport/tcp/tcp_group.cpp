#include "strait/transport/tcp/tcp_group.h"

#include <algorithm>

#include "strait/base/error.h"
#include "strait/transport/tcp/tcp_control.h"
#include "strait/transport/tcp/tcp_transport.h"

namespace strait::tcp {
namespace {

constexpr Channel kTexts{.kind = Kind::text};
constexpr Channel kTensors{.kind = Kind::tensor};
constexpr size_t kPiece = size_t{64} << 20;  // bytes of a message, of which a tensor may need several

}  // namespace

std::vector<std::string> TcpGroup::gather(const std::string& mine) {
  const std::string where = fmt::format("rank {}, {}", rank(), kExchange);
  return gather_over(
      mine, [&](int to, Buffer texts) { mesh_->send(to, kTexts, std::move(texts), where, kNobody); },
      [&](int from) { return mesh_->receive(from, kTexts, where, kNobody); });
}

void TcpGroup::send(const at::Tensor& tensor, int to, const std::string& what) {
  const std::string where = fmt::format("rank {}, {}", rank(), what);
  const auto* bytes = static_cast<const std::byte*>(tensor.data_ptr());
  size_t sent = 0;
  do {
    const size_t size = std::min(kPiece, tensor.nbytes() - sent);
    Buffer piece(size);
    piece.resize(size);
    std::copy_n(bytes + sent, size, piece.data());
    mesh_->send(to, kTensors, std::move(piece), where, to);
    sent += size;
  } while (sent < tensor.nbytes());
}

void TcpGroup::receive(at::Tensor& tensor, int from, const std::string& what) {
  const std::string where = fmt::format("rank {}, {}", rank(), what);
  auto* bytes = static_cast<std::byte*>(tensor.data_ptr());
  size_t received = 0;
  do {
    const size_t size = std::min(kPiece, tensor.nbytes() - received);
    const Buffer piece = mesh_->receive(from, kTensors, where, from);
    if (piece.size() != size) {
      throw WireError("{}: rank {} sends {} bytes, expected {}", where, from, received + piece.size(),
                      received + size);
    }
    std::copy_n(piece.data(), size, bytes + received);
    received += size;
  } while (received < tensor.nbytes());
}

std::unique_ptr<Transport> TcpGroup::make_transport(std::vector<int> peers, std::vector<std::string> names) {
  return std::make_unique<TcpTransport>(mesh_, transports_++, std::move(peers), std::move(names));
}

std::unique_ptr<ControlChannel> TcpGroup::make_control(std::vector<int> peers, const std::string& what,
                                                       ControlHandler handle) {
  return std::make_unique<TcpControl>(mesh_, controls_++, std::move(peers), what, std::move(handle));
}

}  // namespace strait::tcp
