#include "strait/codecs/cuda/cuda_kernels.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "strait/base/error.h"
#include "strait/codecs/device_order.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/cuda/card.h"
#include "strait/kernels/cuda/casts.h"
#include "strait/kernels/cuda/group_codecs.h"
#include "strait/kernels/cuda/sparse.h"

namespace strait {
namespace {

namespace cuda = kernels::cuda;

using Levels = GroupForm::Levels;

/// What launches over one tensor share: its device, that one's current stream, and the word for faults.
class Call {
 public:
  explicit Call(const at::Tensor& like)
      : guard_(like.device()),
        options_(like.options().dtype(at::kByte)),
        faults_(at::zeros({1}, like.options().dtype(at::kInt))) {
    // The tests run the kernels' emulation over tensors of the CPU.
    if (like.is_cpu()) return;
    stream_.handle = current_stream_handle(like.device());
  }

  cuda::Stream stream() const { return stream_; }
  uint32_t* faults() const { return reinterpret_cast<uint32_t*>(faults_.data_ptr<int32_t>()); }

  at::Tensor bytes(at::IntArrayRef shape) const { return at::empty(shape, options_); }
  at::Tensor workspace(size_t size) const { return bytes({static_cast<int64_t>(size)}); }
  at::Tensor floats(at::IntArrayRef shape) const { return at::empty(shape, options_.dtype(at::kFloat)); }

  /// Waits for the device. Whether what was read is a message; throws for what cannot be sent or kept.
  bool has_read() const {
    const auto faults = static_cast<uint32_t>(faults_.item<int32_t>());
    if ((faults & cuda::kNotAMessage) != 0) return false;
    if ((faults & cuda::kNotSendable) != 0)
      throw NumericError("a value is not finite, or past what the codec can send");
    if ((faults & cuda::kPastFloat) != 0)
      throw NumericError("what feedback keeps of the message is past float32");
    return true;
  }
  void expect_written() const { has_read(); }

 private:
  c10::DeviceGuard guard_;
  at::TensorOptions options_;
  at::Tensor faults_;
  cuda::Stream stream_;
};

cuda::Layout layout_of(const Grid& grid) {
  return {grid.rows, grid.row_size, std::min(grid.group_size, grid.row_size)};
}

size_t header_size(const GroupForm& form) {
  switch (form.levels) {
    case Levels::range:
      return range_size(form.ranges);
    case Levels::symmetric:
    case Levels::fp8:
      return sizeof(float);
    case Levels::mx:
    case Levels::mx_integers:
      return 1;
  }
  throw InternalError("unknown levels");
}

cuda::QuantForm quant_form(const GroupForm& form) { return {static_cast<uint32_t>(form.bits), form.ranges}; }

cuda::ValueType value_type(PlainValue type) {
  switch (type) {
    case PlainValue::fp32:
      return cuda::ValueType::fp32;
    case PlainValue::fp16:
      return cuda::ValueType::fp16;
    case PlainValue::bf16:
      return cuda::ValueType::bf16;
  }
  throw InternalError("unknown type of values");
}

/// The state changes in place.
cuda::FeedbackState state_of(const KernelFeedback& feedback) {
  using Rule = KernelFeedback::Rule;
  if (feedback.rule == Rule::none) return {};
  const auto kind = feedback.rule == Rule::sum ? cuda::Feedback::ef : cuda::Feedback::ef21;
  return {kind, feedback.state.data_ptr<float>()};
}

/// The same bytes where numbers of this size may stand.
at::Tensor aligned(const at::Tensor& bytes, size_t size) {
  const at::Tensor dense = bytes.contiguous();
  return reinterpret_cast<uintptr_t>(dense.data_ptr()) % size == 0 ? dense : dense.clone();
}

class CudaKernels : public DeviceKernels {
 public:
  /// Asks each card once.
  bool serve(c10::Device device) const override {
    const std::scoped_lock lock(mutex_);
    const auto [answer, is_new] = served_.try_emplace(device.index());
    if (is_new) {
      const c10::DeviceGuard guard(device);
      answer->second = cuda::serve_this_card();
    }
    return answer->second;
  }

  at::Tensor write_groups(const at::Tensor& x, const GroupForm& form,
                          const KernelFeedback& feedback) const override {
    const Call call(x);
    const cuda::Layout layout = layout_of(form.grid);
    const auto bits = static_cast<uint32_t>(form.bits);
    const cuda::Rounding rounding{form.is_stochastic, form.dither};
    const size_t headers = layout.groups() * header_size(form);
    at::Tensor message = call.workspace(headers + layout.code_bytes(bits));
    auto* const header = message.data_ptr<uint8_t>();
    auto* const codes = header + headers;
    const auto* const values = x.data_ptr<float>();
    const at::Tensor workspace = call.workspace(cuda::quant_workspace(layout));
    switch (form.levels) {
      case Levels::range:
        cuda::encode_quant(values, state_of(feedback), layout, quant_form(form), rounding, header, codes,
                           workspace.data_ptr(), call.faults(), call.stream());
        break;
      case Levels::symmetric:
        cuda::encode_symmetric(values, layout, bits, rounding, header, codes, workspace.data_ptr(),
                               call.faults(), call.stream());
        break;
      case Levels::fp8:
        cuda::encode_fp8(values, layout, form.format, header, codes, call.faults(), call.stream());
        break;
      case Levels::mx:
        cuda::encode_mx(values, layout, form.format, header, codes, call.faults(), call.stream());
        break;
      case Levels::mx_integers:
        cuda::encode_mx_integers(values, layout, header, codes, call.faults(), call.stream());
        break;
    }
    call.expect_written();
    return message;
  }

  at::Tensor read_groups(const at::Tensor& message, const GroupForm& form) const override {
    const Call call(message);
    const cuda::Layout layout = layout_of(form.grid);
    const auto bits = static_cast<uint32_t>(form.bits);
    const at::Tensor bytes = aligned(message, sizeof(float));
    const auto* const header = bytes.data_ptr<uint8_t>();
    const auto* const codes = header + layout.groups() * header_size(form);
    const at::Tensor out = call.floats({static_cast<int64_t>(layout.elements())});
    auto* const values = out.data_ptr<float>();
    switch (form.levels) {
      case Levels::range:
        cuda::decode_quant(header, codes, layout, quant_form(form), /*add=*/false, values, call.faults(),
                           call.stream());
        break;
      case Levels::symmetric:
        cuda::decode_symmetric(header, codes, layout, bits, values, call.faults(), call.stream());
        break;
      case Levels::fp8:
        cuda::decode_fp8(header, codes, layout, form.format, values, call.faults(), call.stream());
        break;
      case Levels::mx:
        cuda::decode_mx(header, codes, layout, form.format, values, call.faults(), call.stream());
        break;
      case Levels::mx_integers:
        cuda::decode_mx_integers(header, codes, layout, values, call.faults(), call.stream());
        break;
    }
    return call.has_read() ? out : at::Tensor();
  }

  bool add_groups(const at::Tensor& message, const GroupForm& form, at::Tensor& sum) const override {
    const Call call(message);
    const cuda::Layout layout = layout_of(form.grid);
    const at::Tensor bytes = aligned(message, sizeof(float));
    const auto* const header = bytes.data_ptr<uint8_t>();
    cuda::decode_quant(header, header + layout.groups() * header_size(form), layout, quant_form(form),
                       /*add=*/true, sum.data_ptr<float>(), call.faults(), call.stream());
    return call.has_read();
  }

  at::Tensor narrow(const at::Tensor& x, PlainValue type) const override {
    const Call call(x);
    at::Tensor bytes = call.bytes({2 * x.numel()});
    cuda::narrow(x.data_ptr<float>(), static_cast<uint64_t>(x.numel()), value_type(type), bytes.data_ptr(),
                 call.faults(), call.stream());
    call.expect_written();
    return bytes;
  }

  at::Tensor widen(const at::Tensor& bytes, PlainValue type) const override {
    const Call call(bytes);
    const at::Tensor halves = aligned(bytes, 2);
    const at::Tensor out = call.floats({halves.numel() / 2});
    cuda::widen(halves.data_ptr(), static_cast<uint64_t>(out.numel()), value_type(type), out.data_ptr<float>(),
                call.faults(), call.stream());
    return call.has_read() ? out : at::Tensor();
  }

  SparseParts write_largest(const at::Tensor& groups, int64_t k, PlainValue type,
                            const KernelFeedback& feedback) const override {
    const cuda::SparseRows rows = rows_of(groups.size(0), groups.size(1), k);
    const Call call(groups);
    SparseParts parts{
        call.bytes({groups.size(0), static_cast<int64_t>(rows.bitmap_bytes())}),
        call.bytes({groups.size(0), k * static_cast<int64_t>(cuda::value_size(value_type(type)))})};
    const at::Tensor workspace = call.workspace(rows.select_workspace());
    const bool has_terms = feedback.rule == KernelFeedback::Rule::difference;
    const at::Tensor terms = has_terms ? call.floats(groups.sizes()) : at::Tensor();
    cuda::write_largest(groups.data_ptr<float>(), state_of(feedback),
                        has_terms ? terms.data_ptr<float>() : nullptr, rows, value_type(type),
                        parts.bitmaps.data_ptr<uint8_t>(), parts.values.data_ptr(), workspace.data_ptr(),
                        call.faults(), call.stream());
    call.expect_written();
    return parts;
  }

  at::Tensor read_sparse(const SparseParts& parts, int64_t n, int64_t k, PlainValue type) const override {
    at::Tensor out = at::empty({parts.bitmaps.size(0), n}, parts.bitmaps.options().dtype(at::kFloat));
    return place(parts, k, type, cuda::Placing::scatter, out) ? out : at::Tensor();
  }

  bool add_sparse(const SparseParts& parts, int64_t k, PlainValue type, at::Tensor& sum) const override {
    at::Tensor groups = sum.view({parts.bitmaps.size(0), -1});
    return place(parts, k, type, cuda::Placing::add, groups);
  }

 private:
  static cuda::SparseRows rows_of(int64_t rows, int64_t n, int64_t k) {
    return {static_cast<uint64_t>(rows), static_cast<uint64_t>(n), static_cast<uint64_t>(k)};
  }
  static bool place(const SparseParts& parts, int64_t k, PlainValue type, cuda::Placing placing,
                    at::Tensor& out) {
    const cuda::SparseRows rows = rows_of(out.size(0), out.size(1), k);
    const Call call(out);
    const at::Tensor bitmaps = parts.bitmaps.contiguous();
    const at::Tensor values = aligned(parts.values, cuda::value_size(value_type(type)));
    const at::Tensor workspace = call.workspace(rows.read_workspace());
    cuda::read_sparse(bitmaps.data_ptr<uint8_t>(), values.data_ptr(), value_type(type), rows, placing,
                      out.data_ptr<float>(), workspace.data_ptr(), call.faults(), call.stream());
    return call.has_read();
  }

  mutable std::mutex mutex_;
  mutable std::map<c10::DeviceIndex, bool> served_;  ///< by the card's number
};

}  // namespace

const DeviceKernels& cuda_kernels() {
  static const CudaKernels kKernels;
  return kKernels;
}

}  // namespace strait
