#include "strait/codecs/elias.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "strait/base/bits.h"
#include "strait/kernels/levels.h"

namespace strait {
namespace {

/// A level l as |l| + 1 in Elias's gamma code, and a sign bit where it is not 0. Payload: that of the fixed
/// codec with one bit stream of all levels in the place of the codes.
class Elias : public Codec {
 public:
  Elias(CodecIdentity identity, Scope scope, unsigned bits, std::shared_ptr<const Codec> fixed)
      : Codec(std::move(identity)), scope_(scope), bits_(bits), fixed_(std::move(fixed)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    return fixed_->reconstruct(x, context);
  }

  bool is_row_wise() const override { return fixed_->is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const unsigned most = 2 * (bits_ - 1) + 1;  // of the gamma code of S + 1 = 2^(bits - 1), and a sign
    return {scales_size(meta) + (meta.elements() * (most + 1) + 7) / 8, false};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    std::vector<std::byte> fixed(fixed_->payload_size(meta).bound);
    ByteWriter writer(fixed);
    fixed_->write(Scope::tensor_over(x, meta), context, writer);
    const size_t scales = scales_size(meta);
    std::ranges::copy(std::span(fixed).first(scales), out.claim(scales).begin());
    BitWriter stream(out.rest());
    for_codes(meta, std::span(fixed).subspan(scales), [&](unsigned code) {
      const int level = static_cast<int>(code) - static_cast<int>(kernels::signed_levels(bits_));
      const auto number = static_cast<unsigned>(std::abs(level)) + 1;
      const auto zeros = static_cast<unsigned>(std::bit_width(number)) - 1;
      const uint64_t low = number - (1U << zeros);
      stream.put(uint64_t{1} << zeros | low << (zeros + 1), 2 * zeros + 1);
      if (level != 0) stream.put(level < 0 ? 1 : 0, 1);
      return code;
    });
    stream.finish();
    STRAIT_CHECK(!stream.full(), "the bound of codec {} is too small", spec());
    out.claim(stream.size());
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override {
    std::vector<std::byte> fixed(fixed_->payload_size(meta).bound);
    const size_t scales = scales_size(meta);
    std::ranges::copy(in.take(scales), fixed.begin());
    const auto bytes = in.take(in.left());
    BitReader stream(bytes);
    const unsigned greatest = kernels::signed_levels(bits_);
    for_codes(meta, std::span(fixed).subspan(scales), [&](unsigned /*code*/) {
      const auto zeros = static_cast<unsigned>(std::countr_zero(stream.peek() | uint64_t{1} << bits_));
      const unsigned number = (1U << zeros) | (stream.peek() >> (zeros + 1) & ((1U << zeros) - 1));
      if (number > greatest + 1) throw WireError("level {} is past {}", number - 1, greatest);
      stream.skip(2 * zeros + 1);
      const unsigned level = number - 1;
      const bool is_negative = level != 0 && (stream.peek() & 1) != 0;
      stream.skip(level != 0 ? 1 : 0);
      return is_negative ? greatest - level : greatest + level;
    });
    if (stream.position() > stream.size() || stream.size() - stream.position() >= 8 ||
        (stream.peek() & ((1U << (stream.size() - stream.position())) - 1)) != 0) {
      throw WireError("{} levels take {} bits, not {} bytes", meta.elements(), stream.position(), bytes.size());
    }
    ByteReader reader(fixed);
    const at::Tensor seen = fixed_->read(reader, meta, context).tensor;
    std::ranges::copy(std::span(seen.data_ptr<float>(), out.size()), out.begin());
  }

 private:
  size_t scales_size(const MessageMeta& meta) const { return scope_.grid(meta).groups() * sizeof(float); }

  /// Replaces every code by change(code), in the order of the groups.
  template <class Change>
  void for_codes(const MessageMeta& meta, std::span<std::byte> codes, const Change& change) const {
    const Grid grid = scope_.grid(meta);
    for (size_t i = 0; i < grid.groups(); ++i) {
      const Grid::Group group = grid.group(i);
      const auto packed = grid.codes(codes, group, bits_);
      const std::vector<std::byte> before(packed.begin(), packed.end());
      BitReader reader(before);
      BitWriter writer(packed);
      for (size_t element = 0; element < group.size; ++element) {
        const auto code = static_cast<unsigned>(reader.peek() & ((1U << bits_) - 1));
        reader.skip(bits_);
        writer.put(change(code), bits_);
      }
      writer.finish();
    }
  }

  Scope scope_;
  unsigned bits_;
  std::shared_ptr<const Codec> fixed_;
};

}  // namespace

std::unique_ptr<Codec> make_elias(CodecIdentity identity, Scope scope, unsigned bits,
                                  std::shared_ptr<const Codec> fixed) {
  return std::make_unique<Elias>(std::move(identity), scope, bits, std::move(fixed));
}

}  // namespace strait
