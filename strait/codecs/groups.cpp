#include "strait/codecs/groups.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>

#include <bit>
#include <string_view>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/kernels/signs.h"

namespace strait {

at::Tensor Grid::as_groups(const at::Tensor& x, Filler filler) const {
  at::Tensor all = x.view({static_cast<int64_t>(rows), static_cast<int64_t>(row_size)});
  if (const size_t rest = row_size % group_size; rest != 0) {
    const auto missing = static_cast<int64_t>(group_size - rest);
    all = filler == Filler::zeros ? at::constant_pad_nd(all, {0, missing}, 0)
                                  : at::cat({all, all.narrow(1, all.size(1) - 1, 1).expand({-1, missing})}, 1);
  }
  return all.reshape({-1, static_cast<int64_t>(group_size)});
}

at::Tensor Grid::sizes(const at::Tensor& like) const {
  at::Tensor sizes = at::full({static_cast<int64_t>(rows), static_cast<int64_t>(groups_a_row())},
                              static_cast<float>(group_size), like.options());
  sizes.narrow(1, sizes.size(1) - 1, 1).fill_(static_cast<float>(group(groups_a_row() - 1).size));
  return sizes.view({-1, 1});
}

at::Tensor Grid::from_groups(const at::Tensor& groups, const at::Tensor& like) const {
  return groups.view({static_cast<int64_t>(rows), -1})
      .narrow(1, 0, static_cast<int64_t>(row_size))
      .reshape(like.sizes())
      .contiguous();
}

void check_padding(std::span<const std::byte> codes, size_t count, unsigned bits) {
  const size_t used = count * bits % 8;
  if (used != 0 && std::to_integer<unsigned>(codes.back()) >> used != 0) {
    throw WireError("the padding behind {} codes of {} bits is not zero", count, bits);
  }
}

Scope Scope::from(OperatorSpec& spec, const char* fallback) {
  constexpr int64_t kMaxBlock = int64_t{1} << 30;
  constexpr std::string_view kBlock = "block:";
  const std::string scope = spec.option("scope", fallback);
  if (scope == "tensor") return {Kind::tensor, 0};
  if (scope == "sample") return {Kind::sample, 0};
  if (!scope.starts_with(kBlock)) spec.reject("scope", scope, "tensor, sample or block:N");
  const int64_t block = parse_integer(std::string_view(scope).substr(kBlock.size()), "a block", 8, kMaxBlock);
  if (block % 8 != 0) spec.reject("scope", scope, "block:N with N a multiple of 8");
  return {Kind::block, static_cast<size_t>(block)};
}

Grid Scope::grid(const MessageMeta& meta) const {
  const size_t row = meta.row_size();
  if (kind_ == Kind::tensor) return {1, meta.elements(), meta.elements()};
  return {meta.rows(), row, kind_ == Kind::sample ? row : std::min(block_, row)};
}

at::Tensor ordered_sum(const at::Tensor& terms) {
  const auto lanes = static_cast<int64_t>(kernels::kSumLanes);
  const auto rows =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>((terms.size(1) + lanes - 1) / lanes)));
  at::Tensor sum = at::constant_pad_nd(terms, {0, rows * lanes - terms.size(1)}, 0).view({-1, rows, lanes});
  while (sum.size(1) > 1) {
    const at::Tensor pairs = sum.view({-1, sum.size(1) / 2, 2, lanes});
    sum = pairs.select(2, 0).add(pairs.select(2, 1));
  }
  sum = sum.view({-1, lanes});
  while (sum.size(1) > 1) {
    const at::Tensor pairs = sum.view({-1, sum.size(1) / 2, 2});
    sum = pairs.select(2, 0).add(pairs.select(2, 1));
  }
  return sum;
}

}  // namespace strait
