#include "strait/codecs/composed.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/zeros.h>

#include "strait/codecs/finite.h"
#include "strait/kernels/half.h"
#include "strait/kernels/quantise.h"

namespace strait {
namespace {

/// Eight codes are `bits` bytes.
constexpr int64_t kCodes = 8;

/// 0, step, 2 * step, ... on the device of `like`.
at::Tensor shifts(int64_t count, int64_t step, const at::Tensor& like) {
  return at::arange(0, count * step, step, like.options().dtype(at::kLong));
}

/// [R, n] with zeros behind each row, as [R, parts, size].
at::Tensor in_parts_of(const at::Tensor& rows, int64_t size) {
  const int64_t parts = (rows.size(1) + size - 1) / size;
  return at::constant_pad_nd(rows, {0, parts * size - rows.size(1)}).view({rows.size(0), parts, size});
}

/// Numbers of `from` bits each, the first lowest, as numbers of `to` bits: [R, parts, n] as [R, parts * m].
at::Tensor regrouped(const at::Tensor& parts, int64_t from, int64_t to, int64_t m) {
  const at::Tensor words =
      parts.bitwise_left_shift(shifts(parts.size(2), from, parts)).sum(2, /*keepdim=*/true);
  return words.bitwise_right_shift(shifts(m, to, parts))
      .bitwise_and((int64_t{1} << to) - 1)
      .view({parts.size(0), -1});
}

}  // namespace

at::Tensor bytes_of_rows(const at::Tensor& values) { return values.contiguous().view(at::kByte); }

at::Tensor rows_of_bytes(const at::Tensor& bytes, at::ScalarType type) {
  return bytes.clone(at::MemoryFormat::Contiguous).view(type);  // the copy begins where the type wants it
}

at::Tensor packed_rows(const at::Tensor& codes, unsigned bits) {
  const auto size = static_cast<int64_t>(kernels::packed_size(static_cast<size_t>(codes.size(1)), bits));
  return regrouped(in_parts_of(codes, kCodes), bits, 8, bits).narrow(1, 0, size).to(at::kByte);
}

at::Tensor unpacked_rows(const at::Tensor& bytes, int64_t n, unsigned bits) {
  const at::Tensor codes = regrouped(in_parts_of(bytes.to(at::kLong), bits), 8, bits, kCodes);
  if (!are_all(codes.narrow(1, n, codes.size(1) - n).eq(0))) return {};
  return codes.narrow(1, 0, n);
}

at::Tensor packed_sets(const at::Tensor& sets, int64_t n) {
  return packed_rows(at::zeros({sets.size(0), n}, sets.options()).scatter(1, sets, 1), 1);
}

at::Tensor unpacked_sets(const at::Tensor& bitmaps, int64_t n, int64_t k) {
  const at::Tensor mask = unpacked_rows(bitmaps, n, 1);
  if (!mask.defined() || !are_all(mask.sum(1).eq(k))) return {};
  return mask.nonzero().select(1, 1).view({bitmaps.size(0), k});
}

bool are_all(const at::Tensor& conditions) { return conditions.all().item<bool>(); }

bool are_finite(const at::Tensor& values) {
  return values.numel() == 0 || largest_magnitude(values) < kernels::kInfinityBits;
}

at::Tensor is_negative_zero(const at::Tensor& values) { return values.eq(0).logical_and(values.signbit()); }

}  // namespace strait
