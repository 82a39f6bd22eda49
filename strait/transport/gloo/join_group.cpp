#include "strait/transport/join_group.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "strait/transport/gloo/c10d_transport.h"
#include "strait/transport/gloo/connections.h"
#include "strait/transport/gloo/store_control.h"

namespace strait {
namespace {

/// Tags of whole tensors between two ranks; Tag keeps below.
constexpr int kTensorTag = std::numeric_limits<int>::max();

class C10dGroup : public Group {
 public:
  C10dGroup(int size, std::shared_ptr<Connections> connections)
      : size_(size), connections_(std::move(connections)) {}

  int rank() const override { return connections_->rank(); }
  int size() const override { return size_; }

  std::vector<std::string> gather(const std::string& mine) override {
    const auto lengths = all_gather(at::full({1}, static_cast<int64_t>(mine.size()), at::kLong));
    int64_t longest = 1;
    for (const auto& length : lengths) longest = std::max(longest, length.item<int64_t>());
    const at::Tensor padded = at::zeros({longest}, at::kByte);
    std::memcpy(padded.data_ptr(), mine.data(), mine.size());
    const auto texts = all_gather(padded);
    std::vector<std::string> all;
    for (size_t i = 0; i < texts.size(); ++i) {
      all.emplace_back(static_cast<const char*>(texts[i].data_ptr()),
                       static_cast<size_t>(lengths[i].item<int64_t>()));
    }
    return all;
  }

  void send(const at::Tensor& tensor, int to, const std::string& what) override {
    run(what, to, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return connections_->gloo().send(tensors, to, kTensorTag);
    });
  }

  void receive(at::Tensor& tensor, int from, const std::string& what) override {
    run(what, from, [&] {
      std::vector<at::Tensor> tensors = {tensor};
      return connections_->gloo().recv(tensors, from, kTensorTag);
    });
  }

  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override {
    return std::make_unique<C10dTransport>(connections_, std::move(peers), std::move(names));
  }

  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override {
    return std::make_unique<StoreControl>(connections_, controls_++, std::move(peers), what, std::move(handle));
  }

  void fail(const Failure& failure) override { connections_->fail(failure); }

 private:
  /// Begins an operation and waits for its end.
  template <class Begin>
  void run(const std::string& what, int peer, const Begin& begin) {
    const std::string where = fmt::format("rank {}, {}", rank(), what);
    c10::intrusive_ptr<c10d::Work> work;
    connections_->begin(where, peer, [&] { work = begin(); });
    connections_->wait(where, peer, *work);
  }

  std::vector<at::Tensor> all_gather(const at::Tensor& mine) {
    std::vector<at::Tensor> inputs = {mine};
    std::vector<std::vector<at::Tensor>> outputs(1);
    for (int i = 0; i < size_; ++i) outputs.front().push_back(at::empty_like(mine));
    run("exchange between the ranks", -1, [&] { return connections_->gloo().allgather(outputs, inputs); });
    return outputs.front();
  }

  int size_;
  std::shared_ptr<Connections> connections_;
  int controls_ = 0;  ///< channels made so far
};

}  // namespace

void require_groups() {}

std::unique_ptr<Group> join_group(const Membership& membership, std::chrono::milliseconds timeout,
                                  const std::string& handshake, const CheckHandshakes& check,
                                  const WaitingFor& waiting) {
  auto rendezvous = std::make_unique<Rendezvous>(membership, timeout, waiting);
  const auto handshakes = rendezvous->exchange(handshake, waiting);
  try {
    check(handshakes);
  } catch (const Error&) {
    rendezvous->linger();  // the others may not have read them yet
    throw;
  }
  const auto connections = std::make_shared<Connections>(membership, timeout, std::move(rendezvous));
  auto group = std::make_unique<C10dGroup>(membership.size, connections);
  connections->trust(group->gather(connections->token()));
  return group;
}

}  // namespace strait
