#include "strait/codecs/groups.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/stack.h>

#include <bit>
#include <string_view>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/kernels/hadamard.h"
#include "strait/kernels/sums.h"

namespace strait {
namespace {

/// The dimension that counts channels.
int64_t channel_dimension(const at::Tensor& x) { return x.dim() == 4 ? 1 : x.dim() - 1; }

}  // namespace

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
                              static_cast<int64_t>(group_size), like.options().dtype(at::kLong));
  sizes.narrow(1, sizes.size(1) - 1, 1).fill_(static_cast<int64_t>(group(groups_a_row() - 1).size));
  return sizes.view({-1, 1});
}

at::Tensor Grid::from_groups(const at::Tensor& groups) const {
  return groups.view({static_cast<int64_t>(rows), -1})
      .narrow(1, 0, static_cast<int64_t>(row_size))
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
  if (scope == "channel") return {Kind::channel, 0};
  if (!scope.starts_with(kBlock)) spec.reject("scope", scope, "tensor, sample, block:N or channel");
  const int64_t block = spec.integer(std::string_view(scope).substr(kBlock.size()), "a block", 8, kMaxBlock);
  if (block % 8 != 0) spec.reject("scope", scope, "block:N with N a multiple of 8");
  return {Kind::block, static_cast<size_t>(block)};
}

Grid Scope::grid(const MessageMeta& meta) const {
  const size_t row = meta.row_size();
  const auto& shape = meta.shape;
  switch (kind_) {
    case Kind::tensor:
      return {1, meta.elements(), meta.elements()};
    case Kind::sample:
      return {meta.rows(), row, row};
    case Kind::block:
      return {meta.rows(), row, std::min(block_, row)};
    case Kind::last: {
      const size_t last = shape.size() < 2 ? 1 : static_cast<size_t>(shape.back());
      return {meta.elements() / last, last, std::min(block_, last)};
    }
    case Kind::channel:
      break;
  }
  const size_t channels = shape.empty() ? 1 : static_cast<size_t>(shape.size() == 4 ? shape[1] : shape.back());
  const size_t each = meta.elements() / channels;
  return {channels, each, each};
}

at::Tensor Scope::in_order(const at::Tensor& x) const {
  if (kind_ != Kind::channel || x.dim() == 0) return x.contiguous();
  return x.movedim(channel_dimension(x), 0).contiguous();
}

at::Tensor Scope::from_order(const at::Tensor& ordered, const at::Tensor& like) const {
  if (kind_ != Kind::channel || like.dim() == 0) return ordered.view(like.sizes()).contiguous();
  const int64_t channel = channel_dimension(like);
  std::vector<int64_t> moved = like.sizes().vec();
  moved.erase(moved.begin() + channel);
  moved.insert(moved.begin(), like.size(channel));
  return ordered.view(moved).movedim(0, channel).contiguous();
}

at::Tensor Scope::tensor_over(std::span<const float> x, const MessageMeta& meta) {
  // What is only read is not written: in_order() copies.
  return at::from_blob(const_cast<float*>(x.data()), meta.shape, at::kFloat);  // NOLINT(*-const-cast)
}

kernels::ChannelView channels_of(const MessageMeta& meta, const std::string& spec) {
  const auto& shape = meta.shape;
  if (shape.size() < 2) {
    throw InputError("codec {} keeps channels and takes messages of two dimensions or more, found shape {}",
                     spec, shape_text(shape));
  }
  const bool has_pictures = shape.size() == 4;
  const auto channels = static_cast<size_t>(has_pictures ? shape[1] : shape.back());
  const size_t inner = has_pictures ? meta.row_size() / channels : 1;
  return {meta.elements() / channels / inner, channels, inner};
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

at::Tensor rotated_blocks(at::Tensor blocks) {
  constexpr auto kBlock = static_cast<int64_t>(kernels::kRotated);
  blocks = blocks.mul(0.125);
  for (int64_t h = 1; h < kBlock; h *= 2) {
    const at::Tensor pairs = blocks.view({-1, kBlock / (2 * h), 2, h});
    const at::Tensor a = pairs.select(2, 0);
    const at::Tensor b = pairs.select(2, 1);
    blocks = at::stack({a.add(b), a.sub(b)}, 2).view({-1, kBlock});
  }
  return blocks;
}

}  // namespace strait
