#include "strait/planning/codec_bench.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/codecs/sparsifier.h"

namespace strait {
namespace {

/// How many copies of a tensor lie at least `distance` bytes apart when they take turns.
int64_t copies_for(size_t bytes, size_t distance) {
  return 1 + static_cast<int64_t>(std::max<size_t>(1, (distance + bytes - 1) / bytes));
}

/// Both endpoints of a link with messages that wait between them, written into the same memory again and again.
class Stream {
 public:
  /// `waiting` messages lie between one that is encoded and the one that is decoded next.
  Stream(const Link& link, const MessageMeta& meta, size_t waiting)
      : meta_(meta), encoder_(link.make_encoder()), decoder_(link.make_decoder()), ids_(meta.rows()) {
    std::iota(ids_.begin(), ids_.end(), 0);
    const size_t bound = link.payload_size(meta).bound;
    for (size_t i = 0; i <= waiting; ++i) {
      messages_.emplace_back(bound).resize(bound);
      std::ranges::fill(messages_.back().bytes(), std::byte{});
    }
  }

  void encode(const at::Tensor& x) {
    Buffer& message = messages_[encoded_ % messages_.size()];
    message.resize(message.capacity());
    ByteWriter out(message.bytes());
    encoder_->encode(x, context(encoded_++), out);
    previous_ = x;
    message.resize(out.used());
  }

  /// Whether the message that is encoded next goes with the one before it.
  bool needs_previous() const { return encoder_->needs_previous(context(encoded_)); }

  at::Tensor decode() {
    ByteReader in(std::as_const(next_to_decode()).bytes());
    return decoder_->decode(in, meta_, context(decoded_++)).tensor;
  }

  const Buffer& next_to_decode() const { return messages_[decoded_ % messages_.size()]; }

  /// The message before stands for that at the weights before.
  MessageContext context(uint64_t step) const {
    return {.step = step, .ids = ids_, .classes = ids_, .previous = &previous_};
  }

 private:
  MessageMeta meta_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<int64_t> ids_;
  std::vector<Buffer> messages_;
  at::Tensor previous_;
  uint64_t encoded_ = 0;
  uint64_t decoded_ = 0;
};

/// memcpy of inputs into the same memory, by as many threads as a codec may use.
class Copier {
 public:
  explicit Copier(BenchInput& input) : input_(input), target_(at::zeros(input.meta().shape, at::kFloat)) {}

  /// Seconds of one copy.
  double copy() {
    constexpr int64_t kGrain = 1 << 20;
    const at::Tensor from = input_.next();
    const auto* source = static_cast<const std::byte*>(from.data_ptr());
    auto* target = static_cast<std::byte*>(target_.data_ptr());
    return timed([&] {
      at::parallel_for(0, static_cast<int64_t>(from.nbytes()), kGrain, [&](int64_t begin, int64_t end) {
        std::memcpy(target + begin, source + begin, static_cast<size_t>(end - begin));
      });
    });
  }

 private:
  BenchInput& input_;
  at::Tensor target_;
};

struct LinkTimes {
  explicit LinkTimes(int warm_up)
      : encode(warm_up), decode(warm_up), encode_copy(warm_up), decode_copy(warm_up) {}
  Times encode;
  Times decode;
  Times encode_copy;  ///< memcpy before each call
  Times decode_copy;
};

LinkTimes time_link(const Link& link, BenchInput& input, const Repetitions& repetitions) {
  constexpr int64_t kMostWaiting = 1024;  // very small messages may stay nearer than their inputs
  // A round takes three copies of the input, so a message is as old as they are after a third as many rounds.
  const auto waiting = static_cast<size_t>(std::min((input.copies() + 2) / 3, kMostWaiting));
  Stream stream(link, input.meta(), waiting);
  for (size_t i = 0; i < waiting; ++i) stream.encode(input.next());
  Copier copier(input);
  at::Tensor received = at::zeros(input.meta().shape, at::kFloat);
  LinkTimes times(repetitions.warm_up);
  repeat(repetitions, [&] {
    times.encode_copy.add(copier.copy());
    const at::Tensor x = input.next();
    times.encode.add(timed([&] { stream.encode(x); }));
    times.decode_copy.add(copier.copy());
    received.reset();  // its memory is what the allocator gives next
    times.decode.add(timed([&] { received = stream.decode(); }));
  });
  return times;
}

/// Seconds of a message, encoded and decoded.
double time_reference(const MessageOperator& reference, BenchInput& input, const Repetitions& repetitions) {
  Copier copier(input);
  Times times(repetitions.warm_up);
  at::Tensor previous;
  uint64_t step = 0;
  repeat(repetitions, [&] {
    for (int i = 0; i < 2; ++i) copier.copy();  // as in time_link(), so that the cache holds the same
    const at::Tensor x = input.next();
    at::Tensor received;
    times.add(timed([&] { received = reference(x, {.step = step++, .previous = &previous}); }));
    previous = x;
  });
  return times.median();
}

/// log2 of the ways to choose k of n in every group.
double choice_bits(const SparseShape& shape) {
  const auto n = static_cast<double>(shape.n);
  const auto k = static_cast<double>(shape.k);
  const double nats = std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
  return static_cast<double>(shape.groups) * nats / std::log(2.0);
}

}  // namespace

double relative_error(const at::Tensor& x, const at::Tensor& seen) {
  const auto norm = [](const at::Tensor& of) { return of.to(at::kDouble).norm().item<double>(); };
  const double all = norm(x);
  return all == 0 ? 0 : norm(x.sub(seen)) / all;
}

size_t cold_distance() {
  constexpr int64_t kLeast = 75'000'000;
  return static_cast<size_t>(std::max<int64_t>(kLeast, sysconf(_SC_LEVEL3_CACHE_SIZE)));
}

BenchInput::BenchInput(std::string data, at::Tensor copies)
    : data_(std::move(data)), copies_(std::move(copies)), meta_(meta_of(copies_[0])) {}

BenchInput BenchInput::drawn(const std::vector<int64_t>& shape, bool relu, size_t distance) {
  const size_t bytes = MessageMeta{shape}.elements() * sizeof(float);
  std::vector<int64_t> sizes = {copies_for(bytes, distance)};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  at::Tensor copies = at::randn(sizes, at::detail::createCPUGenerator(1), at::kFloat);
  if (relu) copies.relu_();
  return {relu ? "relu" : "normal", std::move(copies)};
}

BenchInput BenchInput::repeated(std::string data, const at::Tensor& x, size_t distance) {
  std::vector<int64_t> sizes = {copies_for(x.nbytes(), distance)};
  sizes.insert(sizes.end(), x.sizes().begin(), x.sizes().end());
  return {std::move(data), x.unsqueeze(0).expand(sizes).contiguous()};
}

at::Tensor BenchInput::next() { return copies_[turn_++ % copies_.size(0)]; }

MessageBits message_bits(const Link& link, const MessageMeta& meta, size_t payload_bytes) {
  const auto elements = static_cast<double>(meta.elements());
  MessageBits bits{.all = 8 * static_cast<double>(payload_bytes) / elements, .index = {}, .index_bound = {}};
  const auto sets = link.index_sets(meta);
  if (sets.empty()) return bits;
  const ValueLists& values = link.codec().sparsifier()->values();
  size_t value_bytes = 0;
  double bound = 0;
  for (const auto& set : sets) {
    if (set.k > 0) value_bytes += values.values_size(set);
    bound += choice_bits(set);
  }
  bits.index = 8 * static_cast<double>(payload_bytes - value_bytes) / elements;
  bits.index_bound = bound / elements;
  return bits;
}

VerifiedMessage verify_link(const std::string& feedback, const std::shared_ptr<const Codec>& codec,
                            BenchInput& input) {
  // The second message is the first with state, or with a buffer; the third meets what the second left.
  constexpr uint64_t kMessages = 3;
  const auto link = make_link(codec, feedback);
  Stream stream(*link, input.meta(), 0);
  const MessageOperator expected =
      link->reference([](const Codec& part, const at::Tensor& x, const MessageContext& context) {
        return part.reconstruct(x, context);
      });
  if (!expected) throw Error("feedback {} has no reference in plain tensor operations", feedback);
  VerifiedMessage verified;
  for (uint64_t message = 0; message < kMessages; ++message) {
    const at::Tensor x = input.next();
    const at::Tensor wanted = expected(x, stream.context(message)).contiguous();
    const bool in_full = link->needs_previous() && !stream.needs_previous();
    stream.encode(x);
    const size_t bytes = stream.next_to_decode().size();
    const at::Tensor received = stream.decode();
    if (std::memcmp(received.data_ptr(), wanted.data_ptr(), input.bytes()) != 0) {
      throw Error(
          "codec {}, feedback {}, data {}, message {}: what is decoded differs from what reconstruct() gives",
          codec->spec(), feedback, input.data(), message);
    }
    if (message > 0 && in_full) continue;
    verified = {bytes, relative_error(x, received)};
  }
  return verified;
}

CodecRates bench_codec(const LinkOptions& options, BenchInput& input, const Repetitions& repetitions) {
  const auto codec = make_codec(options.codec);
  const auto link = make_link(codec, options.feedback);
  const VerifiedMessage verified = verify_link(options.feedback, codec, input);
  const LinkTimes times = time_link(*link, input, repetitions);
  const auto rate = [&](double seconds) { return static_cast<double>(input.bytes()) / 1e9 / seconds; };
  CodecRates rates;
  rates.memcpy_gb_s = (rate(times.encode_copy.median()) + rate(times.decode_copy.median())) / 2;
  rates.encode_gb_s = rate(times.encode.median());
  rates.decode_gb_s = rate(times.decode.median());
  rates.encode_memcpy_ratio = times.encode_copy.median() / times.encode.median();
  rates.decode_memcpy_ratio = times.decode_copy.median() / times.decode.median();
  if (codec->reference(input.next().narrow(0, 0, 1)).defined()) {
    const auto reference = link->reference([](const Codec& part, const at::Tensor& x,
                                              const MessageContext& /*context*/) { return part.reference(x); });
    rates.reference_gb_s = rate(time_reference(reference, input, repetitions));
  }
  rates.bits = message_bits(*link, input.meta(), verified.payload_bytes);
  rates.relative_error = verified.relative_error;
  return rates;
}

}  // namespace strait
