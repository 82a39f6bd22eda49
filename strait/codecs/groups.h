#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "strait/codecs/message.h"
#include "strait/codecs/spec.h"
#include "strait/kernels/channels.h"
#include "strait/kernels/quantise.h"

namespace strait {

/// How a message falls into groups: `rows` rows of `row_size` elements, and each row into groups of
/// `group_size`, the last of which may be short. Row-major.
struct Grid {
  /// Elements that follow each other: a group, or several.
  struct Group {
    size_t begin = 0;  ///< among all elements
    size_t size = 0;   ///< elements, at least one
  };

  size_t rows = 0;        ///< in the message
  size_t row_size = 0;    ///< elements
  size_t group_size = 0;  ///< elements of a group that is not short

  /// Groups of a row.
  size_t groups_a_row() const { return (row_size + group_size - 1) / group_size; }

  /// Groups of the message.
  size_t groups() const { return rows * groups_a_row(); }

  /// Where a group stands; number < groups().
  Group group(size_t number) const {
    const size_t begin = number % groups_a_row() * group_size;
    return {number / groups_a_row() * row_size + begin, std::min(group_size, row_size - begin)};
  }

  /// Groups of a run at most.
  static constexpr size_t kRunGroups = 64;

  /// Calls work(number, elements) for the groups from `first` to `last`, which is not one of them, in their
  /// order and in runs, whose first one is `number`: several that are small, all of them of group_size elements
  /// with codes that begin on a byte, or one. `elements` are those of the run.
  template <class Work>
  void for_each_run(size_t first, size_t last, const Work& work) const {
    constexpr size_t kRunElements = 2048;
    const size_t most = std::clamp<size_t>(kRunElements / group_size, 1, kRunGroups);
    const bool are_all_whole = row_size % group_size == 0 && row_size % 8 == 0;
    const size_t part = are_all_whole ? rows * row_size : row_size;  // what runs stay within
    Group at = group(first);
    size_t end = (at.begin / part + 1) * part;
    for (size_t number = first; number < last;) {
      const size_t whole = (end - at.begin) / group_size;
      const size_t count = std::clamp<size_t>(std::min(last - number, whole), 1, most);
      at.size = std::min(count * group_size, end - at.begin);
      work(number, at);
      number += count;
      at.begin += at.size;
      if (at.begin == end) end += part;
    }
  }

  // Codes of `bits` bits each, packed as one list a group, which begins on a byte. Groups but the last of a row
  // end on a byte, so that a row's codes take as many bytes as one long group.

  /// Bytes of the codes of all groups.
  size_t code_bytes(unsigned bits) const { return rows * kernels::packed_size(row_size, bits); }

  /// The group's part of them.
  template <class Byte>
  std::span<Byte> codes(std::span<Byte> all, Group of, unsigned bits) const {
    const size_t begin = row_size * bits % 8 == 0 ? of.begin * bits / 8  // no row is padded
                                                  : of.begin / row_size * kernels::packed_size(row_size, bits) +
                                                        of.begin % row_size / 8 * bits;
    return all.subspan(begin, kernels::packed_size(of.size, bits));
  }

  /// What stands behind a short group in as_groups().
  enum class Filler { zeros, last_element };

  /// The elements of `x`, contiguous and in the groups' order, as [groups, group_size].
  at::Tensor as_groups(const at::Tensor& x, Filler filler) const;

  /// The elements of each group, float32 [groups, 1], on the device of `like`.
  at::Tensor sizes(const at::Tensor& like) const;

  /// The way back from as_groups(): [rows, row_size], contiguous.
  at::Tensor from_groups(const at::Tensor& groups) const;
};

/// Throws WireError where the packed codes of `count` elements end in padding that is not zero.
void check_padding(std::span<const std::byte> codes, size_t count, unsigned bits);

/// The option `scope` of codecs that keep something of each group: `tensor`, the whole message; `sample`, a
/// row; `block:N`, N elements of a row, the last of which may be shorter, N a multiple of 8; `channel`, what
/// has one index in dimension 1 of a message of four dimensions, in the last of others.
class Scope {
 public:
  /// Takes the option from a spec that need not have it. Throws InputError for another value.
  static Scope from(OperatorSpec& spec, const char* fallback);

  /// `block` elements of a row, the last of which may be shorter.
  static Scope blocks(size_t block) { return {Kind::block, block}; }

  /// The same of the last dimension, where a row has several.
  static Scope blocks_of_last_dimension(size_t block) { return {Kind::last, block}; }

  /// N of `block:N`, else 0.
  size_t block() const { return kind_ == Kind::block ? block_ : 0; }

  /// The groups of a message that is not empty, whose elements are in the groups' order.
  Grid grid(const MessageMeta& meta) const;

  /// Whether a group has elements of one row alone.
  bool is_row_wise() const { return kind_ != Kind::tensor && kind_ != Kind::channel; }

  /// Whether the groups' order is that of the message.
  bool keeps_order() const { return kind_ != Kind::channel; }

  /// The elements of x in the groups' order: as they stand, or with channels first. Contiguous; may be x.
  at::Tensor in_order(const at::Tensor& x) const;

  /// The way back, to the shape of `like`; contiguous.
  at::Tensor from_order(const at::Tensor& ordered, const at::Tensor& like) const;

  /// Calls work(elements) with the elements in the groups' order.
  template <class Work>
  void with_ordered(std::span<const float> x, const MessageMeta& meta, const Work& work) const {
    if (kind_ != Kind::channel) return work(x);
    const at::Tensor ordered = in_order(tensor_over(x, meta));
    work(std::span<const float>(ordered.data_ptr<float>(), x.size()));
  }

  /// Calls work(elements), which fills them, and moves them to where they belong in `out`.
  template <class Work>
  void fill_ordered(std::span<float> out, const MessageMeta& meta, const Work& work) const {
    if (kind_ != Kind::channel) return work(out);
    const at::Tensor ordered = at::empty({static_cast<int64_t>(out.size())}, at::kFloat);
    work(std::span<float>(ordered.data_ptr<float>(), out.size()));
    const at::Tensor target = tensor_over(out, meta);
    target.copy_(from_order(ordered, target));
  }

  /// The message as a tensor on the CPU, in its own memory.
  static at::Tensor tensor_over(std::span<const float> x, const MessageMeta& meta);

 private:
  enum class Kind { tensor, sample, block, last, channel };
  Scope(Kind kind, size_t block) : kind_(kind), block_(block) {}

  Kind kind_;
  size_t block_;  ///< elements; of a block alone
};

/// A message of two dimensions or more by its channels, dimension 1 of four dimensions and the last of others.
/// Throws InputError for one of fewer; `spec` names the codec.
kernels::ChannelView channels_of(const MessageMeta& meta, const std::string& spec);

/// Elements that a thread handles at least.
inline constexpr int64_t kGroupGrain = 1 << 15;

/// Calls work(first, last) for runs of groups that follow each other, which threads share.
template <class Work>
void in_runs(const Grid& grid, const Work& work) {
  const auto grain = std::max<int64_t>(1, kGroupGrain / static_cast<int64_t>(grid.group_size));
  if (grid.groups() == 1) return work(0, 1);
  at::parallel_for(0, static_cast<int64_t>(grid.groups()), grain, [&](int64_t first, int64_t last) {
    work(static_cast<size_t>(first), static_cast<size_t>(last));
  });
}

/// Calls work(begin, count) for all of `size` elements, for parts cut at multiples of 8, which threads share.
template <class Work>
void in_parts(size_t size, const Work& work) {
  at::parallel_for(0, static_cast<int64_t>(size + 7) / 8, kGroupGrain / 8, [&](int64_t begin, int64_t end) {
    const size_t first = static_cast<size_t>(begin) * 8;
    work(first, std::min(static_cast<size_t>(end) * 8, size) - first);
  });
}

/// The sum of each row of `terms` [G, n], n >= 1, as [G, 1], in the order of kernels/sums.h.
at::Tensor ordered_sum(const at::Tensor& terms);

/// The blocks [N, 64] rotated as by kernels/hadamard.h without signs, which is also the way back.
at::Tensor rotated_blocks(at::Tensor blocks);

}  // namespace strait
