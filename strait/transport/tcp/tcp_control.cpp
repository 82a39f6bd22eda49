#include "strait/transport/tcp/tcp_control.h"

#include <algorithm>

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

constexpr size_t kMessageSize = sizeof(uint32_t) + sizeof(uint64_t) + 1;

}  // namespace

TcpControl::TcpControl(std::shared_ptr<Mesh> mesh, uint16_t instance, std::vector<int> peers, std::string what,
                       ControlHandler handle)
    : mesh_(std::move(mesh)),
      instance_(instance),
      peers_(std::move(peers)),
      what_(std::move(what)),
      handle_(std::move(handle)),
      thread_([this] { hand_over(); }) {
  for (const int peer : peers_) mesh_->want(peer);
}

TcpControl::~TcpControl() {
  stopped_ = true;
  mesh_->mailroom().wake();
  thread_.join();
  mesh_->mailroom().drop(Kind::control, instance_);
  mesh_->mailroom().drop(Kind::confirmation, instance_);
}

void TcpControl::send(int to, const ControlMessage& message, bool confirmed) {
  Buffer buffer(kMessageSize);
  buffer.resize(kMessageSize);
  ByteWriter out(buffer.bytes());
  out.put(message.kind);
  out.put(message.number);
  out.put(static_cast<uint8_t>(confirmed));
  mesh_->send(to, {.kind = Kind::control, .instance = instance_}, std::move(buffer), what_, to);
}

void TcpControl::post(const ControlMessage& message) {
  for (const int peer : peers_) {
    try {
      send(peer, message, false);
    } catch (const Error&) {  // it shows with the data
    }
  }
}

void TcpControl::deliver(const ControlMessage& message) {
  const std::string where = fmt::format("rank {}, {}", mesh_->rank(), what_);
  // The other ranks wait for data meanwhile, and are to hear from this one who did not answer.
  const auto patience = part_to_wait(mesh_->mailroom().timeout()) / 2;
  const auto begin = std::chrono::steady_clock::now();
  for (const int peer : peers_) {
    mesh_->mailroom().check(where, peer, peer);
    send(peer, message, true);
  }
  for (const int peer : peers_) {
    const Channel channel{.kind = Kind::confirmation, .instance = instance_};
    if (mesh_->mailroom().receive_for(patience, begin, peer, channel, where)) continue;
    const double seconds = std::chrono::duration<double>(patience).count();
    throw PeerError("{}: rank {} is gone: no answer for {:.3g} s", where, peer, seconds);
  }
}

void TcpControl::hand_over() {
  const Channel channel{.kind = Kind::control, .instance = instance_};
  while (const auto received = mesh_->mailroom().receive_any(channel, [this] { return stopped_.load(); })) {
    const auto& [from, buffer] = *received;
    if (buffer.size() != kMessageSize) continue;
    ByteReader in(buffer.bytes());
    const auto kind = in.get<ControlKind>();
    const auto number = in.get<uint64_t>();
    handle_({.kind = kind, .number = number});
    if (in.get<uint8_t>() == 0) continue;
    try {
      mesh_->send(from, {.kind = Kind::confirmation, .instance = instance_}, Buffer(), what_, from);
    } catch (const Error&) {  // it shows with the data
    }
  }
}

}  // namespace strait::tcp
