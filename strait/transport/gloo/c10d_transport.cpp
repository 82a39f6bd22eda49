#include "strait/transport/gloo/c10d_transport.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>

namespace strait {
namespace {

/// Messages of one direction of one boundary that may wait to go; then send() waits. Without a bound a stage
/// that never waits for its peers, as in evaluation, would fill the memory.
constexpr size_t kUnderWayLimit = 16;

/// A tensor over the bytes, for as long as they live.
std::vector<at::Tensor> tensors_over(std::span<std::byte> bytes) {
  return {at::from_blob(bytes.data(), {static_cast<int64_t>(bytes.size())}, at::kByte)};
}

}  // namespace

/// Says for its lifetime what receive() waits for, so that cancel() can end it.
class C10dTransport::Awaiting {
 public:
  Awaiting(C10dTransport& transport, c10d::Work& work) : transport_(transport) {
    const std::scoped_lock lock(transport_.mutex_);
    if (transport_.error_) std::rethrow_exception(transport_.error_);
    transport_.awaited_ = &work;
  }
  ~Awaiting() {
    const std::scoped_lock lock(transport_.mutex_);
    transport_.awaited_ = nullptr;
  }
  Awaiting(const Awaiting&) = delete;
  Awaiting& operator=(const Awaiting&) = delete;

 private:
  C10dTransport& transport_;
};

C10dTransport::C10dTransport(std::shared_ptr<Connections> connections, std::vector<int> peers,
                             std::vector<std::string> names)
    : connections_(std::move(connections)),
      peers_(std::move(peers)),
      names_(std::move(names)),
      thread_([this] { free_sent(); }) {}

C10dTransport::~C10dTransport() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::string C10dTransport::describe(Tag tag) const {
  return fmt::format("rank {}, boundary {}, {}, micro-batch {}", connections_->rank(), names_[tag.boundary()],
                     to_string(tag.direction()), tag.micro_batch());
}

void C10dTransport::send(Tag tag, Buffer message) {
  const auto same_channel = [&](const UnderWay& other) { return other.tag.is_same_channel(tag); };
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      return error_ || static_cast<size_t>(std::ranges::count_if(sent_, same_channel)) < kUnderWayLimit;
    });
    if (error_) std::rethrow_exception(error_);
  }
  UnderWay sent{tag, std::move(message), {}};
  connections_->begin(describe(tag), peer_of(tag), [&] {
    auto tensors = tensors_over(sent.buffer.bytes());
    sent.work = connections_->gloo().send(tensors, peer_of(tag), tag.value());
  });
  const std::scoped_lock lock(mutex_);
  sent_.push_back(std::move(sent));
  changed_.notify_all();
}

void C10dTransport::expect(Tag tag, size_t bound) {
  UnderWay coming{tag, Buffer(bound), {}};
  coming.buffer.resize(bound);
  connections_->begin(describe(tag), peer_of(tag), [&] {
    auto tensors = tensors_over(coming.buffer.bytes());
    coming.work = connections_->gloo().recv(tensors, peer_of(tag), tag.value());
  });
  expected_[tag].push_back(std::move(coming));
}

Buffer C10dTransport::receive(Tag tag, size_t bound) {
  auto& queue = expected_[tag];
  if (queue.empty()) expect(tag, bound);
  UnderWay coming = std::move(queue.front());
  queue.pop_front();
  const Awaiting awaiting(*this, *coming.work);
  connections_->wait(describe(tag), peer_of(tag), *coming.work);
  coming.buffer.resize(frame_size(coming.buffer.bytes()));
  return std::move(coming.buffer);
}

void C10dTransport::free_sent() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !sent_.empty(); });
    if (sent_.empty() || error_) return;
    UnderWay& first = sent_.front();  // stays in place while others are added behind it
    lock.unlock();
    std::exception_ptr error;
    try {
      connections_->wait(describe(first.tag), peer_of(first.tag), *first.work);
    } catch (const Error&) {
      error = std::current_exception();
    }
    lock.lock();
    if (!error_) error_ = error;
    if (!error) sent_.pop_front();
    changed_.notify_all();
  }
}

void C10dTransport::cancel() {
  const std::scoped_lock lock(mutex_);
  if (!error_) error_ = std::make_exception_ptr(Error("rank {} has given up", connections_->rank()));
  if (awaited_ != nullptr) awaited_->abort();
  if (!sent_.empty()) sent_.front().work->abort();
  changed_.notify_all();
}

void C10dTransport::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || sent_.empty(); });
  if (error_) std::rethrow_exception(error_);
}

}  // namespace strait
