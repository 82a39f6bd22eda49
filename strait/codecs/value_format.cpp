#include "strait/codecs/value_format.h"

#include "strait/base/error.h"
#include "strait/codecs/finite.h"
#include "strait/codecs/quant_group.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/half.h"

namespace strait {
namespace {

class Fp32Values : public ValueFormat {
 public:
  size_t size(size_t count) const override { return count * sizeof(float); }

  void write(std::span<const float> x, std::span<std::byte> out) const override {
    if (!kernels::copy_finite(x, out)) throw NumericError("a value is not finite");
  }

  void read(std::span<const std::byte> in, std::span<float> out) const override {
    if (!kernels::copy_finite(in, out)) throw WireError("a float32 value is not finite");
  }

  at::Tensor reconstruct(const at::Tensor& lists) const override {
    check_largest(largest_magnitude(lists), kernels::kInfinityBits, "float32");
    return lists.clone(at::MemoryFormat::Contiguous);
  }

  at::Tensor reference(const at::Tensor& lists) const override { return lists; }
};

class Fp16Values : public ValueFormat {
 public:
  size_t size(size_t count) const override { return count * 2; }

  void write(std::span<const float> x, std::span<std::byte> out) const override {
    check_largest(kernels::to_fp16(x, out), kernels::kFp16OverflowBits, "fp16");
  }

  void read(std::span<const std::byte> in, std::span<float> out) const override {
    if (!kernels::from_fp16(in, out)) throw WireError("an fp16 value is not finite");
  }

  at::Tensor reconstruct(const at::Tensor& lists) const override {
    check_largest(largest_magnitude(lists), kernels::kFp16OverflowBits, "fp16");
    return lists.contiguous().to(at::kHalf).to(at::kFloat);
  }

  at::Tensor reference(const at::Tensor& lists) const override { return lists.to(at::kHalf).to(at::kFloat); }
};

class Bf16Values : public ValueFormat {
 public:
  size_t size(size_t count) const override { return count * 2; }

  void write(std::span<const float> x, std::span<std::byte> out) const override {
    check_largest(kernels::to_bf16(x, out), kernels::kBf16OverflowBits, "bf16");
  }

  void read(std::span<const std::byte> in, std::span<float> out) const override {
    if (!kernels::from_bf16(in, out)) throw WireError("a bf16 value is not finite");
  }

  at::Tensor reconstruct(const at::Tensor& lists) const override {
    check_largest(largest_magnitude(lists), kernels::kBf16OverflowBits, "bf16");
    return lists.contiguous().to(at::kBFloat16).to(at::kFloat);
  }

  at::Tensor reference(const at::Tensor& lists) const override {
    return lists.to(at::kBFloat16).to(at::kFloat);
  }
};

class QuantValues : public ValueFormat {
 public:
  explicit QuantValues(unsigned bits) : bits_(bits) {}

  size_t size(size_t count) const override { return kRangeSize + kernels::packed_size(count, bits_); }

  void write(std::span<const float> x, std::span<std::byte> out) const override {
    const auto range = sendable_range(x);
    ByteWriter writer(out);
    write_range(range, writer);
    kernels::quantise(x, range, bits_, writer.claim(kernels::packed_size(x.size(), bits_)));
  }

  void read(std::span<const std::byte> in, std::span<float> out) const override {
    ByteReader reader(in);
    const auto range = read_range(reader);
    const auto codes = reader.take(kernels::packed_size(out.size(), bits_));
    check_codes(codes, out.size(), range, bits_);
    kernels::dequantise(codes, range, bits_, out);
  }

  at::Tensor reconstruct(const at::Tensor& lists) const override {
    return reconstruct_groups(lists, bits_, std::nullopt);
  }

  at::Tensor reference(const at::Tensor& lists) const override {
    return reference_groups(lists, bits_, /*stochastic=*/false);
  }

 private:
  unsigned bits_;
};

}  // namespace

std::unique_ptr<const ValueFormat> make_value_format(std::string_view name) {
  if (name == "fp32") return std::make_unique<Fp32Values>();
  if (name == "fp16") return std::make_unique<Fp16Values>();
  if (name == "bf16") return std::make_unique<Bf16Values>();
  constexpr std::string_view kQuant = "quant:";
  if (name.size() == kQuant.size() + 1 && name.starts_with(kQuant) && name.back() >= '1' &&
      name.back() <= '8') {
    return std::make_unique<QuantValues>(static_cast<unsigned>(name.back() - '0'));
  }
  return nullptr;
}

}  // namespace strait
