#include "strait/transport/c10d/c10d_group.h"

#include <ATen/ops/empty.h>

#include <algorithm>
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

/// Of what gather() sends: which rank keeps the others waiting is not known.
void move_text(const Connections& connections, bool sends, const at::Tensor& tensor, int other) {
  if (tensor.numel() == 0) return;
  move_tensor(connections, sends, tensor, other, kTextTag, "exchange between the ranks", -1);
}

}  // namespace

void C10dGroup::exchange_tokens() { connections_->board().trust(gather(random_token())); }

/// The first rank gathers, and tells all.
std::vector<std::string> C10dGroup::gather(const std::string& mine) {
  if (rank() > 0) {
    send_texts({mine}, 0);
    return receive_texts(size(), 0);
  }
  std::vector<std::string> all = {mine};
  for (int from = 1; from < size(); ++from) all.push_back(std::move(receive_texts(1, from).front()));
  for (int to = 1; to < size(); ++to) send_texts(all, to);
  return all;
}

/// Their lengths, then the texts one after another.
void C10dGroup::send_texts(const std::vector<std::string>& texts, int to) {
  const at::Tensor lengths = at::empty({static_cast<int64_t>(texts.size())}, at::kLong);
  std::string all;
  for (size_t i = 0; i < texts.size(); ++i) {
    lengths.data_ptr<int64_t>()[i] = static_cast<int64_t>(texts[i].size());
    all += texts[i];
  }
  const at::Tensor bytes = at::empty({static_cast<int64_t>(all.size())}, at::kByte);
  std::ranges::copy(all, bytes.data_ptr<uint8_t>());
  move_text(*connections_, true, lengths, to);
  move_text(*connections_, true, bytes, to);
}

std::vector<std::string> C10dGroup::receive_texts(int count, int from) {
  const at::Tensor lengths = at::empty({count}, at::kLong);
  move_text(*connections_, false, lengths, from);
  const std::span sizes(lengths.data_ptr<int64_t>(), static_cast<size_t>(count));
  int64_t total = 0;
  for (const int64_t size : sizes) {
    if (size < 0 || size > kMaxTexts - total) {
      throw WireError("rank {}: rank {} sends a text of {} bytes, expected {} at most", rank(), from, size,
                      kMaxTexts - total);
    }
    total += size;
  }
  const at::Tensor bytes = at::empty({total}, at::kByte);
  move_text(*connections_, false, bytes, from);
  const auto* next = static_cast<const char*>(bytes.data_ptr());
  std::vector<std::string> texts;
  for (const int64_t size : sizes) {
    texts.emplace_back(next, static_cast<size_t>(size));
    next += size;
  }
  return texts;
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
