#include "strait/transport/c10d/c10d_transport.h"

#include <ATen/ops/from_blob.h>

namespace strait {

C10dTransport::C10dTransport(std::shared_ptr<Connections> connections, std::vector<int> peers,
                             std::vector<std::string> names)
    : connections_(std::move(connections)),
      peers_(std::move(peers)),
      names_(std::move(names)),
      sends_([this](const MessageUnderWay& message) { wait_for(message); }) {}

MessageUnderWay C10dTransport::begin(Tag tag, Buffer buffer, bool sends) const {
  const int peer = peers_[tag.boundary()];
  std::string where = fmt::format("rank {}, boundary {}, {}, micro-batch {}", connections_->rank(),
                                  names_[tag.boundary()], to_string(tag.direction()), tag.micro_batch());
  MessageUnderWay message{tag, peer, std::move(where), std::move(buffer), {}};
  connections_->begin(message.where, peer, [&] {
    const std::span<std::byte> bytes = message.buffer.bytes();
    std::vector<at::Tensor> tensors = {
        at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte)};
    C10dBackend& backend = connections_->backend();
    const int32_t number = kFirstTag | tag.value();
    message.work = sends ? backend.send(tensors, peer, number) : backend.recv(tensors, peer, number);
  });
  return message;
}

void C10dTransport::wait_for(const MessageUnderWay& message) {
  const Waits::Guard guard(waits_, *message.work);
  connections_->wait(message.where, message.peer, *message.work);
}

void C10dTransport::send(Tag tag, Buffer message) {
  sends_.wait_for_room(tag);
  sends_.push(begin(tag, std::move(message), true));
}

void C10dTransport::expect(Tag tag, size_t bound) {
  Buffer buffer(bound);
  buffer.resize(bound);
  expected_[tag].push_back(begin(tag, std::move(buffer), false));
}

Buffer C10dTransport::receive(Tag tag, size_t bound) {
  auto& queue = expected_[tag];
  if (queue.empty()) expect(tag, bound);
  MessageUnderWay coming = std::move(queue.front());
  queue.pop_front();
  sends_.check();
  wait_for(coming);
  coming.buffer.resize(frame_size(coming.buffer.bytes()));
  return std::move(coming.buffer);
}

void C10dTransport::cancel() {
  sends_.fail(std::make_exception_ptr(Error("rank {} has given up", connections_->rank())));
  waits_.end("");
}

}  // namespace strait
