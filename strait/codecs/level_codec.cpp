#include "strait/codecs/level_codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "strait/base/text.h"

namespace strait {
namespace {

constexpr uint32_t kLeastPower = 1U << 22;  // 2^-127, which is subnormal

size_t header_size(bool has_offset) { return (has_offset ? 2 : 1) * sizeof(float); }

}  // namespace

LevelCodec::LevelCodec(CodecIdentity identity, Scope scope, Header header, unsigned bits,
                       const kernels::CodeTable& table)
    : GroupCodec(std::move(identity), scope,
                 header == Header::exponent ? 1 : header_size(header == Header::offset_and_scale), bits),
      header_(header),
      table_(table) {
  for (size_t code = 0; code < size_t{1} << bits; ++code) {
    if (std::isnan(table_[code])) continue;
    least_ = std::min(least_, table_[code]);
    greatest_ = std::max(greatest_, table_[code]);
  }
}

void LevelCodec::encode_group(std::span<const float> x, const kernels::Dither& dither, ByteWriter& header,
                              std::span<std::byte> codes) const {
  const Line line = line_of(x);
  if (!is_sendable(line)) reject();
  if (header_ == Header::exponent) {
    header.put(static_cast<uint8_t>(kernels::biased_exponent(line.scale)));
  } else {
    if (header_ == Header::offset_and_scale) header.put(line.offset);
    header.put(line.scale);
  }
  write_codes(x, line, dither, codes);
}

void LevelCodec::decode_group(ByteReader& header, std::span<const std::byte> codes,
                              std::span<float> out) const {
  const Line line = read_line(header);
  if (!kernels::look_up(codes, bits(), table_, line.offset, line.scale, out)) {
    throw WireError("a code of {} bits stands for nothing", bits());
  }
}

at::Tensor LevelCodec::reconstruct_groups(const TensorGroups& groups) const {
  Lines lines = lines_of(groups);
  if (!lines.offset.defined()) lines.offset = at::zeros_like(lines.scale);
  const auto ends = {lines.offset.add(lines.scale.mul(least_)), lines.offset.add(lines.scale.mul(greatest_))};
  for (const at::Tensor& end : ends) {
    if (!end.isfinite().all().item<bool>()) reject();
  }
  const at::Tensor table =
      at::tensor(at::ArrayRef<float>(table_.data(), size_t{1} << bits()), groups.values.options());
  const at::Tensor units = table.index_select(0, codes_of(groups, lines).view(-1)).view(groups.values.sizes());
  return lines.offset.add(lines.scale.mul(units));
}

bool LevelCodec::is_sendable(const Line& line) const {
  return std::isfinite(line.offset + line.scale * least_) &&
         std::isfinite(line.offset + line.scale * greatest_);
}

LevelCodec::Line LevelCodec::read_line(ByteReader& in) const {
  Line line;
  if (header_ == Header::exponent) {
    line.scale = power_of_two(in.get<uint8_t>());
  } else {
    if (header_ == Header::offset_and_scale) line.offset = in.get<float>();
    line.scale = in.get<float>();
  }
  if (std::signbit(line.scale) || !is_sendable(line)) {
    throw WireError("{} and {} are not the offset and the scale of finite values", line.offset, line.scale);
  }
  return line;
}

void LevelCodec::reject() {
  throw NumericError("a value is not finite, or what the receiver would see is past float32");
}

unsigned bits_from(OperatorSpec& spec, unsigned least) {
  return static_cast<unsigned>(
      parse_integer(spec.argument("the bits a value"), "the bits of a value", int64_t{least}, 8));
}

float power_of_two(uint32_t exponent) {
  return std::bit_cast<float>(exponent == 0 ? kLeastPower : exponent << 23);
}

at::Tensor over_scale(const at::Tensor& values, const at::Tensor& scale) {
  return values.div(at::where(scale.eq(0), at::full({1}, 1.0F, scale.options()), scale));
}

kernels::CodeTable signed_table(unsigned bits, const std::function<float(int level)>& value) {
  const auto greatest = static_cast<int>(kernels::signed_levels(bits));
  kernels::CodeTable table;
  table.fill(std::nanf(""));
  size_t code = 0;
  for (int level = -greatest; level <= greatest; ++level) table[code++] = value(level);
  return table;
}

at::Tensor rounded_randomly(const at::Tensor& t, const TensorGroups& groups) {
  const at::Tensor floor = t.floor();
  return floor.add(groups.dither().lt(t.sub(floor)).to(at::kFloat));
}

at::Tensor signed_codes(const at::Tensor& magnitudes, const TensorGroups& groups, unsigned bits) {
  const at::Tensor level = at::where(groups.values.lt(0), magnitudes.neg(), magnitudes).to(at::kLong);
  return level.add(static_cast<int64_t>(kernels::signed_levels(bits)));
}

}  // namespace strait
