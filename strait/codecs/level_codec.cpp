#include "strait/codecs/level_codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/stack.h>
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

}  // namespace

LevelCodec::LevelCodec(CodecIdentity identity, Scope scope, Header header, unsigned bits,
                       const std::vector<kernels::CodeTable>& tables)
    : GroupCodec(std::move(identity), scope, header_size(header), bits), header_(header) {
  for (const kernels::CodeTable& units : tables) {
    Table& table = tables_.emplace_back(Table{units});
    for (size_t code = 0; code < size_t{1} << bits; ++code) {
      if (std::isnan(units[code])) continue;
      table.least = std::min(table.least, units[code]);
      table.greatest = std::max(table.greatest, units[code]);
    }
  }
}

size_t LevelCodec::header_size(Header header) {
  switch (header) {
    case Header::exponent:
      return 1;
    case Header::scale:
      return sizeof(float);
    case Header::offset_and_scale:
      return 2 * sizeof(float);
    case Header::offset_scale_and_table:
      return 2 * sizeof(float) + 1;
  }
  return 0;
}

void LevelCodec::encode_group(std::span<const float> x, const kernels::Dither& dither, ByteWriter& header,
                              std::span<std::byte> codes) const {
  const Line line = line_of(x);
  if (!is_sendable(line)) reject();
  if (header_ == Header::exponent) {
    header.put(static_cast<uint8_t>(kernels::biased_exponent(line.scale)));
  } else {
    if (header_ != Header::scale) header.put(line.offset);
    header.put(line.scale);
    if (header_ == Header::offset_scale_and_table) header.put(line.table);
  }
  write_codes(x, line, dither, codes);
}

void LevelCodec::decode_group(ByteReader& header, std::span<const std::byte> codes,
                              std::span<float> out) const {
  const Line line = read_line(header);
  if (!kernels::look_up(codes, bits(), tables_[line.table].units, line.offset, line.scale, out)) {
    throw WireError("a code of {} bits stands for nothing", bits());
  }
}

at::Tensor LevelCodec::units_of(const Lines& lines) const {
  const auto options = lines.scale.options();
  std::vector<at::Tensor> tables;
  for (size_t table = 0; table < tables_.size(); ++table) {
    const auto all = units(static_cast<uint8_t>(table));
    tables.push_back(at::tensor(at::ArrayRef<float>(all.data(), all.size()), options));
  }
  if (!lines.table.defined()) return tables.front().expand({lines.scale.size(0), -1});
  return at::stack(tables).index_select(0, lines.table.view(-1));
}

at::Tensor LevelCodec::reconstruct_groups(const TensorGroups& groups) const {
  Lines lines = lines_of(groups);
  if (!lines.offset.defined()) lines.offset = at::zeros_like(lines.scale);
  const at::Tensor units = units_of(lines);
  const at::Tensor known = at::nan_to_num(units);  // 0 is between the ends
  for (const at::Tensor& end : {known.amin(1, true).clamp_max(0), known.amax(1, true).clamp_min(0)}) {
    if (!lines.offset.add(lines.scale.mul(end)).isfinite().all().item<bool>()) reject();
  }
  return lines.offset.add(lines.scale.mul(units.gather(1, codes_of(groups, lines))));
}

bool LevelCodec::is_sendable(const Line& line) const {
  const Table& table = tables_[line.table];
  return std::isfinite(line.offset + line.scale * table.least) &&
         std::isfinite(line.offset + line.scale * table.greatest);
}

LevelCodec::Line LevelCodec::read_line(ByteReader& in) const {
  Line line;
  if (header_ == Header::exponent) {
    line.scale = power_of_two(in.get<uint8_t>());
  } else {
    if (header_ != Header::scale) line.offset = in.get<float>();
    line.scale = in.get<float>();
    if (header_ == Header::offset_scale_and_table) line.table = in.get<uint8_t>();
  }
  if (line.table >= tables_.size()) throw WireError("no table {} among {}", line.table, tables_.size());
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
