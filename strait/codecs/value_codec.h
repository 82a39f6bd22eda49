#pragma once

#include <ATen/Parallel.h>

#include <memory>
#include <utility>

#include "strait/codecs/codec.h"
#include "strait/codecs/device_kernels.h"
#include "strait/codecs/value_format.h"

namespace strait {

/// A codec whose payload is the whole tensor as one list of values, nothing else. The format writes every value
/// on its own, in the same number of bytes.
class ValueCodec : public Codec {
 public:
  /// A codec that writes every value in this format.
  ValueCodec(CodecIdentity identity, std::unique_ptr<const ValueFormat> values)
      : Codec(std::move(identity)), values_(std::move(values)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    return values_->reconstruct(x, context);
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& /*context*/) const override {
    if (const DeviceKernels* const kernels = narrowing_kernels(x)) {
      if (at::Tensor bytes = kernels->narrow(x, *values_->plain()); bytes.defined()) return bytes;
    }
    const at::Tensor bytes = values_->composed_write(x.view({1, -1}));
    return bytes.defined() ? bytes.view(-1) : bytes;
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& /*context*/) const override {
    if (const DeviceKernels* const kernels = narrowing_kernels(payload)) {
      const at::Tensor x = kernels->widen(payload, *values_->plain());
      if (x.defined()) return x.view(meta.shape);
    }
    const at::Tensor values =
        values_->composed_read(payload.view({1, -1}), static_cast<int64_t>(meta.elements()));
    return values.defined() ? values.view(meta.shape) : values;
  }

  at::Tensor reference(const at::Tensor& x) const override { return values_->reference(x); }

  bool is_row_wise() const override { return true; }

 protected:
  static constexpr int64_t kGrain = 1 << 16;  ///< values that a thread handles at least

  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {values_->size(meta.elements()), true};
  }

  void do_encode(std::span<const float> x, const MessageMeta& /*meta*/, const MessageContext& context,
                 ByteWriter& out) const override {
    const auto bytes = out.claim(values_->size(x.size()));
    in_parts(x.size(), [&](size_t begin, size_t count) {
      values_->write(x.subspan(begin, count), context,
                     bytes.subspan(values_->size(begin), values_->size(count)));
    });
  }

  void do_decode(ByteReader& in, const MessageMeta& /*meta*/, const MessageContext& context,
                 std::span<float> out) const override {
    const auto bytes = in.take(values_->size(out.size()));
    in_parts(out.size(), [&](size_t begin, size_t count) {
      values_->read(bytes.subspan(values_->size(begin), values_->size(count)), context,
                    out.subspan(begin, count));
    });
  }

 private:
  /// Kernels for the tensor's device, where the format is one of 2 bytes.
  const DeviceKernels* narrowing_kernels(const at::Tensor& x) const {
    const auto plain = values_->plain();
    return plain.has_value() && plain != PlainValue::fp32 ? kernels_of(x.device()) : nullptr;
  }

  /// Shares the values between LibTorch's threads; for formats whose values stand alone.
  template <class Work>
  static void in_parts(size_t count, const Work& work) {
    at::parallel_for(0, static_cast<int64_t>(count), kGrain, [&](int64_t begin, int64_t end) {
      work(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    });
  }

  std::unique_ptr<const ValueFormat> values_;
};

}  // namespace strait
