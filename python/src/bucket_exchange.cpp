#include "python/src/bucket_exchange.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cstring>

#include "python/src/tensors.h"
#include "strait/base/random.h"
#include "strait/base/text.h"

namespace strait::python {
namespace {

/// Room for the words of a rank that cannot send.
constexpr size_t kSpaceLeast = 512;

/// The first bytes of a message that says why there is none, where a frame has kFrameMagic.
constexpr uint32_t kNoFrame = 0;

std::span<std::byte> bytes_of(const at::Tensor& bytes) {
  return std::as_writable_bytes(std::span(bytes.data_ptr<uint8_t>(), static_cast<size_t>(bytes.numel())));
}

void write_words(std::string_view words, std::span<std::byte> space) {
  std::memcpy(space.data(), &kNoFrame, sizeof kNoFrame);
  space = space.subspan(sizeof kNoFrame);
  std::memcpy(space.data(), words.data(), std::min(words.size(), space.size() - 1));
}

/// What write_words() has written; nothing for a frame.
std::optional<std::string> words_in(std::span<const std::byte> space) {
  uint32_t first = kFrameMagic;
  std::memcpy(&first, space.data(), sizeof first);
  if (first != kNoFrame) return {};
  const auto* begin = reinterpret_cast<const char*>(space.data()) + sizeof kNoFrame;
  return one_line(printable(std::string(begin, ::strnlen(begin, space.size() - sizeof kNoFrame))));
}

constexpr const char* kElements = "elements";

}  // namespace

/// The channels that carry one bucket's gradients.
struct BucketExchange::Channels {
  Channels(const std::shared_ptr<const Link>& link, int64_t bucket, int64_t elements, int rank, int ranks)
      : meta{{1, elements}},
        peers(rank, ranks,
              [&](int from) {
                return ChannelSpec{.boundary_name = fmt::format("bucket {} of rank {}", bucket, from),
                                   .boundary = static_cast<uint16_t>(from),
                                   .direction = Direction::gradient,
                                   .link = link};
              }),
        space(std::max(kSpaceLeast, kFrameHeaderSize + link->payload_size(meta).bound)) {}

  MessageMeta meta;
  PeerChannels peers;
  size_t space;  ///< bytes of a message with the room behind it
};

BucketExchange::BucketExchange(const std::string& codec, const std::string& feedback, int rank, int ranks,
                               uint64_t seed)
    : link_(make_link(codec, feedback)), rank_(rank), ranks_(ranks), seed_(seed) {
  expect_no_previous(fmt::format("feedback \"{}\"", feedback), *link_);
  if (!link_->serves_weights()) {
    throw InputError("feedback \"{}\" keeps something per sample or class and serves no gradients of weights",
                     feedback);
  }
  if (rank < 0 || rank >= ranks || ranks > UINT16_MAX) {
    throw InputError("rank: expected one of {} ranks, found {}", ranks, rank);
  }
}

BucketExchange::Channels& BucketExchange::channels_of(int64_t bucket, int64_t elements) {
  auto& channels = channels_[bucket];
  if (channels == nullptr || channels->meta.shape.back() != elements) {
    channels = std::make_shared<Channels>(link_, bucket, elements, rank_, ranks_);
  }
  return *channels;
}

at::Tensor BucketExchange::encode(int64_t bucket, const at::Tensor& gradient, uint64_t step) {
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  const at::Tensor message = as_message(gradient, "gradients").reshape({1, -1});
  Channels& channels = channels_of(bucket, message.numel());
  at::Tensor out = at::zeros({static_cast<int64_t>(channels.space)}, at::kByte);
  const MessageContext context{
      .seed = make_key(seed_, bucket), .step = step, .micro_batch = static_cast<uint32_t>(bucket)};
  try {
    const Buffer frame =
        channels.peers.sender().encode(message, context, {.training = true, .compressed = true});
    std::ranges::copy(frame.bytes(), bytes_of(out).begin());
  } catch (const NumericError& error) {
    write_words(error.what(), bytes_of(out));
  }
  Traffic sent = channels.peers.sender().take_traffic();
  sent.wire_bytes = sent.messages * channels.space;
  traffic_ += sent;
  return out;
}

void BucketExchange::forget(int64_t bucket) {
  const std::scoped_lock lock(mutex_);
  channels_.erase(bucket);
}

at::Tensor BucketExchange::decode(int64_t bucket, const at::Tensor& messages, uint64_t step) {
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  const auto found = channels_.find(bucket);
  const at::Tensor here = messages.to(at::kCPU).contiguous();
  if (found == channels_.end() || here.scalar_type() != at::kByte ||
      here.numel() != static_cast<int64_t>(found->second->space) * ranks_) {
    throw InputError("bucket {}: expected the messages of {} ranks, as encode() makes them", bucket, ranks_);
  }
  Channels& channels = *found->second;
  const auto space_of = [&](int from) {
    return bytes_of(here).subspan(static_cast<size_t>(from) * channels.space, channels.space);
  };
  const MessageContext context{
      .seed = make_key(seed_, bucket), .step = step, .micro_batch = static_cast<uint32_t>(bucket)};
  const MessageMode mode{.training = true, .compressed = true};
  const auto frame = [&](int from) {
    const auto bytes = space_of(from).first(frame_size(space_of(from)));
    Buffer copy(bytes.size());
    copy.resize(bytes.size());
    std::ranges::copy(bytes, copy.bytes().begin());
    return copy;
  };
  std::optional<std::string> failure;
  for (int from = 0; from < ranks_ && !failure; ++from) failure = words_in(space_of(from));
  if (failure) {  // what the others have sent is received, so that the next step finds both ends alike
    for (int from = 0; from < ranks_; ++from) {
      if (!words_in(space_of(from)))
        channels.peers.receiver(from).decode(frame(from), channels.meta, context, mode);
    }
    throw NumericError("{}", *failure);
  }
  at::Tensor sum = channels.peers.sum(frame, channels.meta, context, mode);
  traffic_ += channels.peers.take_received();
  return sum.div_(ranks_).view({-1});
}

BucketExchange::State BucketExchange::state() {
  const std::scoped_lock lock(mutex_);
  State all;
  for (auto& [bucket, channels] : channels_) {
    auto tensors =
        copy_state([&, of = channels.get()](StateVisitor& visitor) { of->peers.visit_state(visitor); });
    if (tensors.empty()) continue;
    tensors.emplace(kElements, at::full({1}, channels->meta.shape.back(), at::kLong));
    all.emplace(bucket, std::move(tensors));
  }
  return all;
}

void BucketExchange::load_state(State state) {
  std::map<int64_t, std::shared_ptr<Channels>> loaded;
  for (auto& [bucket, tensors] : state) {
    const auto elements = tensors.extract(kElements);
    if (bucket < 0 || elements.empty() || elements.mapped().scalar_type() != at::kLong ||
        elements.mapped().numel() != 1 || elements.mapped().item<int64_t>() < 0) {
      throw InputError("the state of bucket {}: expected its number of elements", bucket);
    }
    auto channels = std::make_shared<Channels>(link_, bucket, elements.mapped().item<int64_t>(), rank_, ranks_);
    put_state(std::move(tensors), fmt::format("bucket {}", bucket),
              [&](StateVisitor& visitor) { channels->peers.visit_state(visitor); });
    loaded.emplace(bucket, std::move(channels));
  }
  const std::scoped_lock lock(mutex_);
  channels_ = std::move(loaded);
}

Traffic BucketExchange::traffic() {
  const std::scoped_lock lock(mutex_);
  return traffic_;
}

}  // namespace strait::python
