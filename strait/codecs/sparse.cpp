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
struct IndexSet {
  bool rice = false;
  std::span<const std::byte> bytes;
};

/// Reads the codes, lengths and index sets of all groups.
std::vector<IndexSet> read_index_sets(ByteReader& in, const SparseShape& shape, IndexCode allowed, unsigned r) {
  const auto codes = in.take(shape.groups);
  ByteReader lengths(in.take(shape.groups * sizeof(uint32_t)));
  const size_t bitmap = kernels::bitmap_size(shape.n);
  std::vector<IndexSet> sets(shape.groups);
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
  const size_t values = shape.groups * values_->size(shape.k);
  if (shape.k == shape.n) return {values, true};
  const size_t indices = shape.groups * (kIndexHeaderSize + index_bound(shape));
  return {indices + values, index_ == IndexCode::bitmap};
}

void SparseFormat::write_indices(std::span<const uint64_t> masks, const SparseShape& shape,
                                 ByteWriter& out) const {
  const size_t words = shape.mask_words();
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const unsigned r = kernels::rice_parameter(shape.n, shape.k);
  ByteWriter codes(out.claim(shape.groups));
  ByteWriter lengths(out.claim(shape.groups * sizeof(uint32_t)));
  for (size_t group = 0; group < shape.groups; ++group) {
    const auto mask = masks.subspan(group * words, words);
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

void SparseFormat::write(std::span<const float> x, std::span<const uint64_t> masks, const SparseShape& shape,
                         ByteWriter& out) const {
  const size_t block = values_->size(shape.k);
  if (shape.k == shape.n) {
    for (size_t group = 0; group < shape.groups; ++group) {
      values_->write(x.subspan(group * shape.n, shape.n), out.claim(block));
    }
    return;
  }
  write_indices(masks, shape, out);
  const size_t words = shape.mask_words();
  std::vector<float> kept(shape.k);
  for (size_t group = 0; group < shape.groups; ++group) {
    kernels::gather_marked(x.subspan(group * shape.n, shape.n), masks.subspan(group * words, words), kept);
    values_->write(kept, out.claim(block));
  }
}

void SparseFormat::read(ByteReader& in, const SparseShape& shape, std::span<float> out) const {
  const size_t block = values_->size(shape.k);
  if (shape.k == shape.n) {
    for (size_t group = 0; group < shape.groups; ++group) {
      values_->read(in.take(block), out.subspan(group * shape.n, shape.n));
    }
    return;
  }
  const unsigned r = kernels::rice_parameter(shape.n, shape.k);
  const auto sets = read_index_sets(in, shape, index_, r);
  std::vector<float> kept(shape.k);
  std::vector<uint32_t> positions(shape.k);
  for (size_t group = 0; group < shape.groups; ++group) {
    const auto& [rice, bytes] = sets[group];
    const bool valid = rice ? kernels::read_rice(bytes, shape.n, r, positions)
                            : kernels::read_bitmap(bytes, shape.n, positions);
    if (!valid) throw WireError("group {} has no valid set of {} of {} positions", group, shape.k, shape.n);
    values_->read(in.take(block), kept);
    const auto part = out.subspan(group * shape.n, shape.n);
    std::ranges::fill(part, 0.0F);
    for (size_t i = 0; i < kept.size(); ++i) part[positions[i]] = kept[i];
  }
}

}  // namespace strait
