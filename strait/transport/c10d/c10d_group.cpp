#include "strait/transport/c10d/c10d_group.h"

#include <ATen/ops/from_blob.h>

#include <limits>

#include "strait/base/error.h"
#include "strait/base/token.h"
#include "strait/transport/c10d/c10d_transport.h"
#include "strait/transport/c10d/store_control.h"

namespace strait {
namespace {

/// Tags of whole tensors and of texts between two ranks. Those of frames are below, because no boundary has the
/// number Tag::kBoundaries.
constexpr int kTensorTag = std::numeric_limits<int>::max();
constexpr int kTextTag = kTensorTag - 1;

constexpr int64_t kMaxTexts = int64_t{1} << 30;  // bytes of the texts of a message

/// Sends or receives a tensor and waits for it; an error says `what` it is and that it is for `peer`.
void move_tensor(const Connections& connections, bool sends, const at::Tensor& tensor, int other, int tag,
                 const std::string& what, int peer) {
  const std::string where = fmt::format("rank {}, {}", connections.rank(), what);
  c10::intrusive_ptr<c10d::Work> work;
  connections.begin(where, peer, [&] {
    std::vector<at::Tensor> tensors = {tensor};
    work = sends ? connections.backend().send(tensors, other, tag)
                 : connections.backend().recv(tensors, other, tag);
  });
  connections.wait(where, peer, *work);
}

}  // namespace

void C10dGroup::exchange_tokens() { connections_->board().trust(gather(random_token())); }

/// The bytes go behind their size, as two messages.
std::vector<std::string> C10dGroup::gather(const std::string& mine) {
  const auto move = [&](bool sends, void* data, int64_t size, int other) {
    move_tensor(*connections_, sends, at::from_blob(data, {size}, at::kByte), other, kTextTag, kExchange,
                kNobody);
  };
  return gather_over(
      mine,
      [&](int to, Buffer texts) {
        auto size = static_cast<int64_t>(texts.size());
        move(true, &size, sizeof(size), to);
        move(true, texts.data(), size, to);
      },
      [&](int from) {
        int64_t size = 0;
        move(false, &size, sizeof(size), from);
        if (size < 1 || size > kMaxTexts) {
          throw WireError("rank {}: rank {} sends texts of {} bytes, expected 1 to {}", rank(), from, size,
                          kMaxTexts);
        }
        Buffer texts(static_cast<size_t>(size));
        texts.resize(texts.capacity());
        move(false, texts.data(), size, from);
        return texts;
      });
}

void C10dGroup::send(const at::Tensor& tensor, int to, const std::string& what) {
  move_tensor(*connections_, true, tensor, to, kTensorTag, what, to);
}

void C10dGroup::receive(at::Tensor& tensor, int from, const std::string& what) {
  move_tensor(*connections_, false, tensor, from, kTensorTag, what, from);
}

std::unique_ptr<Transport> C10dGroup::make_transport(std::vector<int> peers, std::vector<std::string> names) {
  return std::make_unique<C10dTransport>(connections_, std::move(peers), std::move(names));
}

std::unique_ptr<ControlChannel> C10dGroup::make_control(std::vector<int> peers, const std::string& what,
                                                        ControlHandler handle) {
  return std::make_unique<StoreControl>(connections_, controls_++, std::move(peers), what, std::move(handle));
}

}  // namespace strait
