#include "strait/codecs/level_codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/nan_to_num.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "strait/codecs/composed.h"
#include "strait/codecs/moments.h"

namespace strait {
namespace {

constexpr uint32_t kLeastPower = 1U << 22;  // 2^-127, which is subnormal

}  // namespace

LevelCodec::LevelCodec(CodecIdentity identity, Scope scope, Header header, unsigned bits,
                       const std::vector<kernels::CodeTable>& tables)
    : GroupCodec(std::move(identity), scope, header_size(header), bits), header_(header), tables_(tables) {
  for (const kernels::CodeTable& units : tables_) {
    Ends& ends = ends_.emplace_back();
    for (size_t code = 0; code < size_t{1} << bits; ++code) {
      if (std::isnan(units[code])) continue;
      ends.least = std::min(ends.least, units[code]);
      ends.greatest = std::max(ends.greatest, units[code]);
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

void LevelCodec::encode_groups(std::span<const float> x, size_t size, const kernels::Dither& dither,
                               ByteWriter& headers, std::span<std::byte> codes) const {
  std::array<Line, Grid::kRunGroups> own;
  const auto lines = std::span(own).first((x.size() + size - 1) / size);
  find_lines(x, size, lines);
  for (const Line& line : lines) put_line(line, headers);
  write_codes(x, {lines, size}, dither, codes);
}

void LevelCodec::decode_groups(ByteReader& headers, std::span<const std::byte> codes, size_t size,
                               std::span<float> out) const {
  std::array<Line, Grid::kRunGroups> own;
  const auto lines = std::span(own).first((out.size() + size - 1) / size);
  for (Line& line : lines) line = read_line(headers);
  if (!kernels::look_up(codes, bits(), tables_, {lines, size}, out)) {
    throw WireError("a code of {} bits stands for nothing", bits());
  }
}

at::Tensor LevelCodec::units_of(const Lines& lines) const {
  const auto options = lines.scale.options();
  std::vector<at::Tensor> tables;
  for (const auto& table : tables_) {
    tables.push_back(at::tensor(at::ArrayRef<float>(table.data(), size_t{1} << bits()), options));
  }
  if (!lines.table.defined()) return tables.front().expand({lines.scale.size(0), -1});
  return at::stack(tables).index_select(0, lines.table.view(-1));
}

CodedGroups LevelCodec::code_groups(const TensorGroups& groups) const {
  Lines lines = lines_of(groups);
  if (!lines.offset.defined()) lines.offset = at::zeros_like(lines.scale);
  if (!are_sendable(lines, units_of(lines))) reject();
  return {headers_of(lines), codes_of(groups, lines)};
}

at::Tensor LevelCodec::values_of(const CodedGroups& groups) const {
  const Lines lines = lines_in(groups.headers);
  if (lines.table.defined() && !are_all(lines.table.lt(static_cast<int64_t>(tables_.size())))) return {};
  const at::Tensor units = units_of(lines);
  if (!are_all(lines.scale.signbit().logical_not()) || !are_sendable(lines, units)) return {};
  const at::Tensor values = lines.offset.add(lines.scale.mul(units.gather(1, groups.codes)));
  return are_finite(values) ? values : at::Tensor();
}

/// is_sendable() of all; `units` are those of the lines.
bool LevelCodec::are_sendable(const Lines& lines, const at::Tensor& units) const {
  const at::Tensor known = at::nan_to_num(units);  // 0 is between the ends
  const auto is_finite = [&](const at::Tensor& end) {
    return lines.offset.add(lines.scale.mul(end)).isfinite();
  };
  return are_all(
      is_finite(known.amin(1, true).clamp_max(0)).logical_and(is_finite(known.amax(1, true).clamp_min(0))));
}

/// What put_line() writes, uint8 [G, n].
at::Tensor LevelCodec::headers_of(const Lines& lines) const {
  at::Tensor scale = bytes_of_rows(lines.scale);
  if (header_ == Header::exponent) return lines.scale.view(at::kInt).bitwise_right_shift(23).to(at::kByte);
  if (header_ == Header::scale) return scale;
  const at::Tensor line = at::cat({bytes_of_rows(lines.offset), scale}, 1);
  return header_ == Header::offset_and_scale ? line : at::cat({line, lines.table.to(at::kByte)}, 1);
}

/// The way back, unchecked.
LevelCodec::Lines LevelCodec::lines_in(const at::Tensor& headers) const {
  if (header_ == Header::exponent) {
    const at::Tensor exponent = headers.to(at::kInt);
    const at::Tensor bits =
        exponent.bitwise_left_shift(23).add(exponent.eq(0).to(at::kInt).mul(int64_t{kLeastPower}));
    const at::Tensor scale = bits.to(at::kInt).view(at::kFloat);
    return {at::zeros_like(scale), scale};
  }
  const auto number = [&](int64_t place) { return rows_of_bytes(headers.narrow(1, 4 * place, 4), at::kFloat); };
  if (header_ == Header::scale) return {at::zeros_like(number(0)), number(0)};
  Lines lines{number(0), number(1)};
  if (header_ == Header::offset_scale_and_table) lines.table = headers.narrow(1, 8, 1).to(at::kLong);
  return lines;
}

LevelCodec::Line LevelCodec::mean_and_deviation(std::span<const float> x) {
  const float mean = mean_of(x);
  return {mean, deviation_of(x, mean)};
}

LevelCodec::Lines LevelCodec::means_and_deviations(const TensorGroups& groups) {
  const at::Tensor mean = means(groups);
  return {mean, deviations(groups, mean)};
}

bool LevelCodec::is_sendable(const Line& line) const {
  const Ends& ends = ends_[line.table];
  return std::isfinite(line.offset + line.scale * ends.least) &&
         std::isfinite(line.offset + line.scale * ends.greatest);
}

void LevelCodec::put_line(const Line& line, ByteWriter& out) const {
  if (!is_sendable(line)) reject();
  if (header_ == Header::exponent) {
    out.put(static_cast<uint8_t>(kernels::biased_exponent(line.scale)));
  } else {
    if (header_ != Header::scale) out.put(line.offset);
    out.put(line.scale);
    if (header_ == Header::offset_scale_and_table) out.put(line.table);
  }
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

LargestScaleCodec::LargestScaleCodec(CodecIdentity identity, Scope scope, unsigned bits,
                                     const kernels::CodeTable& table)
    : LevelCodec(std::move(identity), scope, Header::scale, bits, {table}) {}

void LargestScaleCodec::find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const {
  kernels::largest_magnitudes(x, size, lines);
}

LevelCodec::Lines LargestScaleCodec::lines_of(const TensorGroups& groups) const {
  return {{}, largest_magnitudes(groups)};
}

unsigned bits_from(OperatorSpec& spec, unsigned least) {
  return static_cast<unsigned>(
      spec.integer(spec.argument("the bits a value"), "the bits of a value", int64_t{least}, 8));
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

kernels::CodeTable uniform_table(unsigned bits) {
  const auto greatest = static_cast<float>(kernels::signed_levels(bits));
  return signed_table(bits, [=](int level) { return static_cast<float>(level) / greatest; });
}

at::Tensor in_uniform_steps(const TensorGroups& groups, const at::Tensor& scale, unsigned bits) {
  return over_scale(groups.values.abs(), scale).mul(static_cast<double>(kernels::signed_levels(bits)));
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
