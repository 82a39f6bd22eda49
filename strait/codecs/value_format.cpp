#include "strait/codecs/value_format.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>

#include <utility>

#include "strait/base/error.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/finite.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/half.h"

namespace strait {
namespace {

at::Tensor finite_or_undefined(const at::Tensor& values) { return are_finite(values) ? values : at::Tensor(); }

class Fp32Values : public ValueFormat {
 public:
  size_t size(size_t count) const override { return count * sizeof(float); }

  void write(std::span<const float> x, const MessageContext& /*context*/,
             std::span<std::byte> out) const override {
    if (!kernels::copy_finite(x, out)) throw NumericError("a value is not finite");
  }

  void read(std::span<const std::byte> in, const MessageContext& /*context*/,
            std::span<float> out) const override {
    if (!kernels::copy_finite(in, out)) throw WireError("a float32 value is not finite");
  }

  at::Tensor reconstruct(const at::Tensor& lists, const MessageContext& /*context*/) const override {
    check_largest(largest_magnitude(lists), kernels::kInfinityBits, "float32");
    return lists.clone(at::MemoryFormat::Contiguous);
  }

  at::Tensor composed_write(const at::Tensor& lists) const override {
    check_largest(largest_magnitude(lists), kernels::kInfinityBits, "float32");
    return bytes_of_rows(lists);
  }

  at::Tensor composed_read(const at::Tensor& bytes, int64_t /*n*/) const override {
    return finite_or_undefined(rows_of_bytes(bytes, at::kFloat));
  }

  std::optional<PlainValue> plain() const override { return PlainValue::fp32; }

  at::Tensor reference(const at::Tensor& lists) const override { return lists; }
};

/// A format of 16 bits.
struct HalfFormat {
  std::string_view name;
  PlainValue plain;
  at::ScalarType type;
  uint32_t overflow;
  uint32_t (*write)(std::span<const float> x, std::span<std::byte> out);
  bool (*read)(std::span<const std::byte> in, std::span<float> out);
};

constexpr HalfFormat kFp16 = {"fp16",           PlainValue::fp16,  at::kHalf, kernels::kFp16OverflowBits,
                              kernels::to_fp16, kernels::from_fp16};
constexpr HalfFormat kBf16 = {"bf16",           PlainValue::bf16,  at::kBFloat16, kernels::kBf16OverflowBits,
                              kernels::to_bf16, kernels::from_bf16};

class HalfValues : public ValueFormat {
 public:
  explicit HalfValues(const HalfFormat& format) : format_(format) {}

  size_t size(size_t count) const override { return count * 2; }

  void write(std::span<const float> x, const MessageContext& /*context*/,
             std::span<std::byte> out) const override {
    check_largest(format_.write(x, out), format_.overflow, format_.name);
  }

  void read(std::span<const std::byte> in, const MessageContext& /*context*/,
            std::span<float> out) const override {
    if (!format_.read(in, out)) throw WireError("a value of {} is not finite", format_.name);
  }

  at::Tensor reconstruct(const at::Tensor& lists, const MessageContext& /*context*/) const override {
    return rounded(lists).to(at::kFloat);
  }

  at::Tensor composed_write(const at::Tensor& lists) const override { return bytes_of_rows(rounded(lists)); }

  at::Tensor composed_read(const at::Tensor& bytes, int64_t /*n*/) const override {
    return finite_or_undefined(rows_of_bytes(bytes, format_.type).to(at::kFloat));
  }

  std::optional<PlainValue> plain() const override { return format_.plain; }

  at::Tensor reference(const at::Tensor& lists) const override { return lists.to(format_.type).to(at::kFloat); }

 private:
  at::Tensor rounded(const at::Tensor& lists) const {
    check_largest(largest_magnitude(lists), format_.overflow, format_.name);
    return lists.contiguous().to(format_.type);
  }

  HalfFormat format_;
};

class QuantValues : public ValueFormat {
 public:
  explicit QuantValues(unsigned bits) : bits_(bits) {}

  size_t size(size_t count) const override { return kRangeSize + kernels::packed_size(count, bits_); }

  void write(std::span<const float> x, const MessageContext& /*context*/,
             std::span<std::byte> out) const override {
    const auto range = sendable_range(x);
    ByteWriter writer(out);
    write_range(range, writer);
    kernels::quantise(x, range, bits_, writer.claim(kernels::packed_size(x.size(), bits_)));
  }

  void read(std::span<const std::byte> in, const MessageContext& /*context*/,
            std::span<float> out) const override {
    ByteReader reader(in);
    const auto range = read_range(reader);
    const auto codes = reader.take(kernels::packed_size(out.size(), bits_));
    check_codes(codes, out.size(), range, bits_);
    kernels::dequantise(codes, range, bits_, out);
  }

  at::Tensor reconstruct(const at::Tensor& lists, const MessageContext& /*context*/) const override {
    return reconstruct_groups(lists, bits_, std::nullopt);
  }

  at::Tensor composed_write(const at::Tensor& lists) const override {
    const QuantisedGroups groups = quantised_groups(lists, bits_, std::nullopt);
    return at::cat({bytes_of_rows(groups.ranges), packed_rows(groups.codes, bits_)}, 1);
  }

  at::Tensor composed_read(const at::Tensor& bytes, int64_t n) const override {
    const auto range = static_cast<int64_t>(kRangeSize);
    const at::Tensor codes = unpacked_rows(bytes.narrow(1, range, bytes.size(1) - range), n, bits_);
    if (!codes.defined()) return {};
    return dequantised_groups({rows_of_bytes(bytes.narrow(1, 0, range), at::kFloat), codes}, bits_);
  }

  at::Tensor reference(const at::Tensor& lists) const override {
    return reference_groups(lists, bits_, /*stochastic=*/false);
  }

 private:
  unsigned bits_;
};

/// Each list as a message of one row.
class CodecValues : public ValueFormat {
 public:
  explicit CodecValues(std::shared_ptr<const Codec> codec) : codec_(std::move(codec)) {}

  size_t size(size_t count) const override { return codec_->payload_size(row_of(count)).bound; }

  void write(std::span<const float> x, const MessageContext& context, std::span<std::byte> out) const override {
    ByteWriter writer(out);
    codec_->write_elements(x, row_of(x.size()), of_values(context), writer);
  }

  void read(std::span<const std::byte> in, const MessageContext& context, std::span<float> out) const override {
    ByteReader reader(in);
    codec_->read_elements(reader, row_of(out.size()), of_values(context), out);
  }

  at::Tensor reconstruct(const at::Tensor& lists, const MessageContext& context) const override {
    return codec_->reconstruct(lists, of_values(context));
  }

  at::Tensor reference(const at::Tensor& lists) const override { return codec_->reference(lists); }

  bool depends_on_order() const override { return true; }

  bool has_composed_form() const override { return false; }

 private:
  static MessageMeta row_of(size_t count) { return {{1, static_cast<int64_t>(count)}}; }

  /// Draws of their own: those of the message may have decided what is in the list.
  static MessageContext of_values(const MessageContext& context) {
    MessageContext own = context;
    own.seed ^= 0x76616c756573;  // "values"
    own.wants_indices = false;
    return own;
  }

  std::shared_ptr<const Codec> codec_;
};

}  // namespace

std::unique_ptr<const ValueFormat> make_value_format(std::string_view name) {
  if (name == "fp32") return std::make_unique<Fp32Values>();
  if (name == "fp16") return std::make_unique<HalfValues>(kFp16);
  if (name == "bf16") return std::make_unique<HalfValues>(kBf16);
  constexpr std::string_view kQuant = "quant:";
  if (name.size() == kQuant.size() + 1 && name.starts_with(kQuant) && name.back() >= '1' &&
      name.back() <= '8') {
    return std::make_unique<QuantValues>(static_cast<unsigned>(name.back() - '0'));
  }
  return nullptr;
}

std::unique_ptr<const ValueFormat> make_list_format(std::string_view name) {
  if (auto format = make_value_format(name)) return format;
  auto codec = make_codec(name);
  if (codec->sparsifier() != nullptr || codec->warm_start() != nullptr || !codec->is_row_wise() ||
      !codec->payload_size({{1, 64}}).exact) {
    throw InputError(
        "\"{}\" cannot write values that another codec keeps: expected fp32, fp16, bf16, quant:b or another "
        "codec that writes rows one by one, all of their elements, in bytes that do not depend on them",
        name);
  }
  return std::make_unique<CodecValues>(std::move(codec));
}

}  // namespace strait
