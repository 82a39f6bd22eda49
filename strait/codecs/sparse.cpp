#include "strait/codecs/sparse.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "strait/kernels/index_code.h"
#include "strait/kernels/select.h"

namespace strait {
namespace {

constexpr size_t kIndexHeaderSize = sizeof(uint8_t) + sizeof(uint32_t);

/// One group's index set as it stands in the message.
struct CodedSet {
  bool rice = false;
  std::span<const std::byte> bytes;
};

/// Reads the codes, lengths and index sets of all groups.
std::vector<CodedSet> read_coded_sets(ByteReader& in, const SparseShape& shape, IndexCode allowed, unsigned r) {
  const auto codes = in.take(shape.groups);
  ByteReader lengths(in.take(shape.groups * sizeof(uint32_t)));
  const size_t bitmap = kernels::bitmap_size(shape.n);
  std::vector<CodedSet> sets(shape.groups);
  for (size_t group = 0; group < shape.groups; ++group) {
    const auto code = std::to_integer<unsigned>(codes[group]);
    const auto length = lengths.get<uint32_t>();
    const bool rice = code != 0;
    if (rice && code != 1 + r)
      throw WireError("group {} has index code {}, expected 0 or {}", group, code, 1 + r);
    if (allowed == (rice ? IndexCode::bitmap : IndexCode::rice)) {
      throw WireError("group {} has index code {}, which this codec does not use", group, code);
    }
    const bool fits = !rice                             ? length == bitmap
                      : allowed == IndexCode::automatic ? length < bitmap
                                                        : length <= kernels::rice_bound(shape.n, shape.k, r);
    if (!fits) throw WireError("group {} has an index set of {} bytes with index code {}", group, length, code);
    sets[group] = {rice, in.take(length)};
  }
  return sets;
}

std::span<const uint64_t> mask_of(const IndexSet& kept, size_t group) {
  const size_t words = kept.shape.mask_words();
  return std::span(kept.masks).subspan(group * words, words);
}

}  // namespace

size_t SparseShape::mask_words() const { return kernels::mask_words(n); }

SparseFormat::SparseFormat(IndexCode index, std::unique_ptr<const ValueFormat> values)
    : index_(index), values_(std::move(values)) {}

size_t SparseFormat::index_bound(const SparseShape& shape) const {
  const size_t bitmap = kernels::bitmap_size(shape.n);
  if (index_ == IndexCode::bitmap) return bitmap;
  const size_t rice = kernels::rice_bound(shape.n, shape.k, kernels::rice_parameter(shape.n, shape.k));
  return index_ == IndexCode::rice ? rice : std::min(rice, bitmap);
}

PayloadSize SparseFormat::size(const SparseShape& shape) const {
  const size_t values = values_size(shape);
  if (shape.k == shape.n) return {values, true};
  const size_t indices = shape.groups * (kIndexHeaderSize + index_bound(shape));
  return {indices + values, index_ == IndexCode::bitmap};
}

void SparseFormat::write_indices(const IndexSet& kept, ByteWriter& out) const {
  const SparseShape& shape = kept.shape;
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const unsigned r = kernels::rice_parameter(shape.n, shape.k);
  ByteWriter codes(out.claim(shape.groups));
  ByteWriter lengths(out.claim(shape.groups * sizeof(uint32_t)));
  for (size_t group = 0; group < shape.groups; ++group) {
    const auto mask = mask_of(kept, group);
    std::optional<size_t> rice;
    if (index_ != IndexCode::bitmap) {
      const size_t limit = index_ == IndexCode::rice ? index_bound(shape) : bitmap - 1;
      const auto room = out.rest();
      rice = kernels::write_rice(mask, r, room.first(std::min(limit, room.size())));
    }
    STRAIT_CHECK(rice || index_ != IndexCode::rice, "a Rice code of {} of {} exceeds its bound", shape.k,
                 shape.n);
    const auto set = out.claim(rice.value_or(bitmap));
    if (!rice) kernels::write_bitmap(mask, set);
    codes.put(static_cast<uint8_t>(rice ? 1 + r : 0));
    lengths.put(static_cast<uint32_t>(set.size()));
  }
}

IndexSet SparseFormat::read_indices(ByteReader& in, const SparseShape& shape) const {
  IndexSet kept{shape, std::vector<uint64_t>(shape.groups * shape.mask_words())};
  const unsigned r = kernels::rice_parameter(shape.n, shape.k);
  const auto sets = read_coded_sets(in, shape, index_, r);
  std::vector<uint32_t> positions(shape.k);
  for (size_t group = 0; group < shape.groups; ++group) {
    const auto& [rice, bytes] = sets[group];
    const bool valid = rice ? kernels::read_rice(bytes, shape.n, r, positions)
                            : kernels::read_bitmap(bytes, shape.n, positions);
    if (!valid) throw WireError("group {} has no valid set of {} of {} positions", group, shape.k, shape.n);
    uint64_t* mask = kept.masks.data() + group * shape.mask_words();
    for (const uint32_t position : positions) mask[position / 64] |= uint64_t{1} << position % 64;
  }
  return kept;
}

void SparseFormat::write(std::span<const float> x, const IndexSet& kept, ByteWriter& out) const {
  if (kept.shape.k < kept.shape.n) write_indices(kept, out);
  write_values(x, kept, out);
}

IndexSet SparseFormat::read(ByteReader& in, const SparseShape& shape, std::span<float> out) const {
  IndexSet kept{shape, {}};
  if (shape.k < shape.n) kept = read_indices(in, shape);
  read_values(in, kept, out);
  return kept;
}

void SparseFormat::write_values(std::span<const float> x, const IndexSet& kept, ByteWriter& out) const {
  const auto& [groups, n, k] = kept.shape;
  std::vector<float> values(k < n ? k : 0);
  for (size_t group = 0; group < groups; ++group) {
    const auto part = x.subspan(group * n, n);
    if (k < n) kernels::gather_marked(part, mask_of(kept, group), values);
    values_->write(k < n ? values : part, out.claim(values_->size(k)));
  }
}

void SparseFormat::read_values(ByteReader& in, const IndexSet& kept, std::span<float> out) const {
  const auto& [groups, n, k] = kept.shape;
  std::vector<float> values(k < n ? k : 0);
  for (size_t group = 0; group < groups; ++group) {
    const auto part = out.subspan(group * n, n);
    values_->read(in.take(values_->size(k)), k < n ? std::span(values) : part);
    if (k < n) kernels::scatter_marked(values, mask_of(kept, group), part);
  }
}

}  // namespace strait
