#include "strait/transport/tcp/tcp_group.h"

#include <algorithm>
#include <cstring>

#include "strait/base/error.h"
#include "strait/transport/tcp/tcp_control.h"
#include "strait/transport/tcp/tcp_transport.h"

namespace strait::tcp {
namespace {

constexpr Channel kTexts{.kind = Kind::text};
constexpr Channel kTensors{.kind = Kind::tensor};
constexpr size_t kPiece = size_t{64} << 20;  // bytes of a message, of which a tensor may need several
constexpr int kNobody = -1;                  // which rank keeps the others waiting in gather() is not known

/// The texts one after another, each behind its length.
Buffer pack(const std::vector<std::string>& texts) {
  size_t size = 0;
  for (const auto& text : texts) size += sizeof(uint64_t) + text.size();
  Buffer buffer(size);
  buffer.resize(size);
  ByteWriter out(buffer.bytes());
  for (const auto& text : texts) {
    out.put(static_cast<uint64_t>(text.size()));
    std::memcpy(out.claim(text.size()).data(), text.data(), text.size());
  }
  return buffer;
}

std::vector<std::string> unpack(const Buffer& buffer) {
  ByteReader in(buffer.bytes());
  std::vector<std::string> texts;
  while (in.left() > 0) {
    const auto bytes = in.take(in.get<uint64_t>());
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace

/// The first rank gathers, and tells all.
std::vector<std::string> TcpGroup::gather(const std::string& mine) {
  const std::string where = fmt::format("rank {}, exchange between the ranks", rank());
  const auto receive_from = [&](int from, size_t count) {
    auto texts = unpack(mesh_->receive(from, kTexts, where, kNobody));
    if (texts.size() != count) throw WireError("{}: {} texts, expected {}", where, texts.size(), count);
    return texts;
  };
  if (rank() > 0) {
    mesh_->send(0, kTexts, pack({mine}), where, kNobody);
    return receive_from(0, static_cast<size_t>(size()));
  }
  std::vector<std::string> all = {mine};
  for (int from = 1; from < size(); ++from) all.push_back(std::move(receive_from(from, 1).front()));
  for (int to = 1; to < size(); ++to) mesh_->send(to, kTexts, pack(all), where, kNobody);
  return all;
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
