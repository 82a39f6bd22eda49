#include "strait/codecs/sparse.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "strait/codecs/composed.h"
#include "strait/codecs/device_kernels.h"
#include "strait/kernels/copy.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/interlaced.h"
#include "strait/kernels/masked.h"

namespace strait {
namespace {

constexpr size_t kIndexHeaderSize = sizeof(uint8_t) + sizeof(uint32_t);
constexpr uint8_t kBitmapCode = 0;
constexpr uint8_t kRiceCode = 1;  // with the parameter 0
constexpr uint8_t kInterlacedCode = 32;

/// Throws NumericError where multiplied values are not all finite.
void expect_scaled(bool holds) {
  if (!holds) throw NumericError("a value is not finite, or past float32 when it is multiplied by n / k");
}

/// Space of the thread's own, that stays; what is in it is undefined. `Use` tells several such spaces apart.
template <class Use, class Item>
std::span<Item> own(size_t count) {
  thread_local std::vector<Item> space;
  if (space.size() < count) space.resize(count);
  return std::span(space).first(count);
}

struct WholeGroup;
struct PartOfGroup;

template <class Use>
kernels::InterlaceScratch& own_interlace() {
  thread_local kernels::InterlaceScratch scratch;
  return scratch;
}

/// The bits that the interlaced code of k of n positions may take where another can be had.
double worthwhile(size_t n, size_t k) {
  return std::min(kernels::rice_bits(n, k), static_cast<double>(n)) * 15 / 16;
}

/// Whether the interlaced code looks worthwhile: asks the first eighth of a large group, since classes take as
/// long to count as Rice takes to write.
bool looks_worthwhile(std::span<const uint64_t> mask, const SparseShape& shape) {
  constexpr size_t kLeast = 4096;
  if (shape.n <= kLeast) return true;
  const size_t n = std::max(kLeast, shape.n / 8 / 64 * 64);
  const auto part = mask.first(kernels::mask_words(n));
  const size_t k = kernels::count_masked(part);
  if (k == 0) return true;
  return kernels::interlaced_bits(part, n, shape.width, own_interlace<PartOfGroup>()) <= worthwhile(n, k);
}

std::span<float> own_values(size_t count) {
  struct Values;
  return own<Values, float>(count);
}

/// One coded set for each group.
std::span<CodedSet> own_sets(size_t groups) {
  struct Sets;
  return own<Sets, CodedSet>(groups);
}

/// Where a group's positions go, whether anybody keeps them or not.
std::span<uint64_t> mask_for(size_t group, const SparseShape& shape, IndexSet* indices) {
  struct Mask;
  return indices != nullptr ? indices->mask(group) : own<Mask, uint64_t>(shape.mask_words());
}

}  // namespace

size_t SparseShape::mask_words() const { return kernels::mask_words(n); }

void IndexSet::reset(const SparseShape& new_shape) {
  shape = new_shape;
  masks.resize(shape.k < shape.n ? shape.groups * shape.mask_words() : 0);
}

std::span<uint64_t> IndexSet::mask(size_t group) {
  if (shape.k == shape.n) return {};
  return std::span(masks).subspan(group * shape.mask_words(), shape.mask_words());
}

std::span<const uint64_t> IndexSet::mask(size_t group) const {
  if (shape.k == shape.n) return {};
  return std::span(masks).subspan(group * shape.mask_words(), shape.mask_words());
}

float ValueLists::factor(const SparseShape& shape) const {
  if (scale_ == ValueScale::none) return 1;
  return static_cast<float>(static_cast<double>(shape.n) / static_cast<double>(shape.k));
}

void ValueLists::write_list(std::span<const float> x, std::span<const uint64_t> mask, const SparseShape& shape,
                            const MessageContext& context, std::span<std::byte> out) const {
  if (shape.k == shape.n) return values_->write(x, context, out);
  const auto list = own_values(shape.k);
  kernels::gather_masked(x, mask, list);
  if (const float by = factor(shape); by != 1) {
    for (float& value : list) value *= by;
    expect_scaled(kernels::all_finite(list));
  }
  values_->write(list, context, out);
}

void ValueLists::read_list(std::span<const std::byte> in, std::span<const uint64_t> mask,
                           const SparseShape& shape, const MessageContext& context,
                           std::span<float> out) const {
  if (shape.k == shape.n) return values_->read(in, context, out);
  const auto list = own_values(shape.k);
  values_->read(in, context, list);
  kernels::scatter_masked(list, mask, out);
}

void ValueLists::write_values(std::span<const float> x, const IndexSet& indices, const MessageContext& context,
                              ByteWriter& out) const {
  const SparseShape& shape = indices.shape;
  const size_t size = values_->size(shape.k);
  const auto lists = out.claim(values_size(shape));
  for_each_group(shape, [&](size_t group) {
    write_list(shape.part(x, group), indices.mask(group), shape, context_of_list(context, group),
               lists.subspan(group * size, size));
  });
}

void ValueLists::read_values(ByteReader& in, const IndexSet& indices, const MessageContext& context,
                             std::span<float> out) const {
  const SparseShape& shape = indices.shape;
  const size_t size = values_->size(shape.k);
  const auto lists = in.take(values_size(shape));
  for_each_group(shape, [&](size_t group) {
    read_list(lists.subspan(group * size, size), indices.mask(group), shape, context_of_list(context, group),
              shape.part(out, group));
  });
}

at::Tensor ValueLists::reconstruct(const at::Tensor& groups, const at::Tensor& kept, const SparseShape& shape,
                                   const MessageContext& context) const {
  if (shape.k == shape.n) return values_->reconstruct(groups, context);
  const at::Tensor places = values_->depends_on_order() ? std::get<0>(kept.sort(1)) : kept;
  const at::Tensor lists = groups.gather(1, places);
  const float by = factor(shape);
  if (by == 1) return at::zeros_like(groups).scatter(1, places, values_->reconstruct(lists, context));
  const at::Tensor scaled = lists.mul(by);
  expect_scaled(are_finite(scaled));
  return at::zeros_like(groups).scatter(1, places, values_->reconstruct(scaled, context));
}

at::Tensor ValueLists::composed_write(const at::Tensor& groups, const at::Tensor& kept,
                                      const SparseShape& shape) const {
  if (shape.k == shape.n) return values_->composed_write(groups);
  const at::Tensor lists = groups.gather(1, kept);
  const float by = factor(shape);
  return values_->composed_write(by == 1 ? lists : lists.mul(by));
}

at::Tensor ValueLists::composed_read(const at::Tensor& bytes, const at::Tensor& kept,
                                     const SparseShape& shape) const {
  at::Tensor lists = values_->composed_read(bytes, static_cast<int64_t>(shape.k));
  if (shape.k == shape.n || !lists.defined()) return lists;
  return at::zeros({lists.size(0), static_cast<int64_t>(shape.n)}, lists.options()).scatter(1, kept, lists);
}

SparseFormat::SparseFormat(IndexCode index, std::unique_ptr<const ValueFormat> values)
    : ValueLists(std::move(values)), index_(index) {}

size_t SparseFormat::index_bound(const SparseShape& shape) const {
  const size_t bitmap = kernels::bitmap_size(shape.n);
  if (index_ == IndexCode::bitmap) return bitmap;
  if (index_ == IndexCode::interlaced) return kernels::interlaced_bound(shape.n);
  const size_t rice = kernels::rice_bound(shape.n, shape.k, kernels::rice_parameter(shape.n, shape.k));
  return index_ == IndexCode::rice ? rice : std::min(rice, bitmap);
}

PayloadSize SparseFormat::size(const SparseShape& shape) const {
  const size_t values = values_size(shape);
  if (shape.k == shape.n) return {values, true};
  const size_t indices = shape.groups * (kIndexHeaderSize + index_bound(shape));
  return {indices + values, index_ == IndexCode::bitmap};
}

CodedSet SparseFormat::write_set(std::span<const uint64_t> mask, const SparseShape& shape,
                                 std::span<std::byte> space) const {
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const bool automatic = index_ == IndexCode::automatic;
  if (allows(IndexCode::interlaced) && (!automatic || looks_worthwhile(mask, shape))) {
    const auto most = static_cast<size_t>(worthwhile(shape.n, shape.k) / 8);
    const auto room = automatic ? space.first(std::min(space.size(), most)) : space;
    const auto used = kernels::write_interlaced(mask, shape.n, shape.width, own_interlace<WholeGroup>(), room);
    if (used) return {kInterlacedCode, space.first(*used)};
    STRAIT_CHECK(automatic, "an interlaced code of {} of {} exceeds its bound", shape.k, shape.n);
  }
  if (allows(IndexCode::rice)) {
    const unsigned r = kernels::rice_parameter(shape.n, shape.k);
    const auto room = automatic ? space.first(std::min(space.size(), bitmap - 1)) : space;
    const auto used = kernels::write_rice(mask, r, room);
    if (used) return {static_cast<uint8_t>(kRiceCode + r), space.first(*used)};
    STRAIT_CHECK(automatic, "a Rice code of {} of {} exceeds its bound", shape.k, shape.n);
  }
  kernels::write_bitmap(mask, space.first(bitmap));
  return {kBitmapCode, space.first(bitmap)};
}

/// Writes groups of which fill(group, mask, list) writes the positions and the values.
// Every group is written where it stands when all index sets are as long as they can be; then what is shorter
// moves together. So groups do not wait for each other.
template <class Fill>
void SparseFormat::write_groups(const SparseShape& shape, const Fill& fill, ByteWriter& out,
                                IndexSet* indices) const {
  const size_t groups = shape.groups;
  if (indices != nullptr) indices->reset(shape);
  ByteWriter codes(out.claim(groups));
  ByteWriter lengths(out.claim(groups * sizeof(uint32_t)));
  const size_t bound = index_bound(shape);
  const size_t list = values().size(shape.k);
  ByteWriter space(out.rest());
  const auto sets = space.claim(groups * bound);
  const auto lists = space.claim(groups * list);
  const auto coded = own_sets(groups);
  for_each_group(shape, [&](size_t group) {
    const auto mask = mask_for(group, shape, indices);
    fill(group, mask, lists.subspan(group * list, list));
    coded[group] = write_set(mask, shape, sets.subspan(group * bound, bound));
  });
  for (const auto& [code, bytes] : coded) {
    codes.put(code);
    lengths.put(static_cast<uint32_t>(bytes.size()));
    const auto place = out.claim(bytes.size());
    if (place.data() != bytes.data()) std::memmove(place.data(), bytes.data(), bytes.size());
  }
  const auto place = out.claim(lists.size());
  if (place.data() != lists.data()) std::memmove(place.data(), lists.data(), lists.size());
}

void SparseFormat::write(const SparseShape& shape, const SparseSource& source, const MessageContext& context,
                         ByteWriter& out, IndexSet* indices) const {
  const ValueFormat& format = values();
  const auto fill = [&](size_t group, std::span<uint64_t> mask, std::span<std::byte> list) {
    const auto values = source.select(group, mask);
    const MessageContext own = context_of_list(context, group);
    format.write(values, own, list);
    if (!source.asks_what_is_sent()) return;
    const auto received = own_values(shape.k);
    format.read(list, own, received);
    source.sent(group, mask, values, received);
  };
  write_groups(shape, fill, out, indices);
}

/// Whether a message of bitmaps is the payload and nobody asks what they say.
bool SparseFormat::is_payload(const SparseShape& shape, const IndexSet* indices) const {
  return shape.k == shape.n || (index_ == IndexCode::bitmap && indices == nullptr);
}

size_t SparseFormat::parts_size(const SparseShape& shape) const {
  const size_t indices = shape.k == shape.n ? 0 : kIndexHeaderSize + kernels::bitmap_size(shape.n);
  return shape.groups * indices + values_size(shape);
}

void SparseFormat::write_parts(std::span<const std::byte> message, const SparseShape& shape, ByteWriter& out,
                               IndexSet* indices) const {
  if (is_payload(shape, indices)) {
    std::ranges::copy(message, out.claim(message.size()).begin());
    if (indices != nullptr) indices->reset(shape);
    return;
  }
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const size_t list = values().size(shape.k);
  ByteReader in(message.subspan(shape.groups * kIndexHeaderSize));
  const auto bitmaps = in.take(shape.groups * bitmap);
  const auto lists = in.take(shape.groups * list);
  const auto fill = [&](size_t group, std::span<uint64_t> mask, std::span<std::byte> to) {
    const bool valid = kernels::read_bitmap(bitmaps.subspan(group * bitmap, bitmap), shape.n, shape.k, mask);
    STRAIT_CHECK(valid, "a device keeps other than {} of {} positions", shape.k, shape.n);
    std::ranges::copy(lists.subspan(group * list, list), to.begin());
  };
  write_groups(shape, fill, out, indices);
}

SparseParts SparseFormat::composed_parts(const at::Tensor& groups, const at::Tensor& kept,
                                         const SparseShape& shape) const {
  return {packed_sets(kept, groups.size(1)), composed_write(groups, std::get<0>(kept.sort(1)), shape)};
}

SparseParts SparseFormat::largest_by(const DeviceKernels& kernels, const at::Tensor& groups,
                                     const SparseShape& shape, const KernelFeedback& feedback) const {
  if (shape.n > DeviceKernels::kMostElements) return {};
  const auto plain = values().plain();
  SparseParts parts =
      kernels.write_largest(groups, static_cast<int64_t>(shape.k), plain.value_or(PlainValue::fp32), feedback);
  if (!plain && parts.values.defined()) {
    parts.values = values().composed_write(rows_of_bytes(parts.values, at::kFloat));
  }
  return parts;
}

at::Tensor SparseFormat::message_of(const SparseParts& parts) {
  if (!parts.values.defined()) return {};
  const at::Tensor& sets = parts.bitmaps;
  const at::Tensor codes = at::full({sets.size(0)}, int64_t{kBitmapCode}, sets.options());
  const at::Tensor lengths = at::full({sets.size(0), 1}, sets.size(1), sets.options().dtype(at::kInt));
  return at::cat({codes, bytes_of_rows(lengths).view(-1), sets.reshape(-1), parts.values.reshape(-1)});
}

/// The way back, without a look at the parts themselves.
SparseParts SparseFormat::parts_of(const at::Tensor& message, const SparseShape& shape) {
  const auto groups = static_cast<int64_t>(shape.groups);
  const auto bitmap = static_cast<int64_t>(kernels::bitmap_size(shape.n));
  int64_t at = 0;
  const auto rows_of = [&](int64_t bytes) {
    at::Tensor rows = message.narrow(0, at, groups * bytes).view({groups, bytes});
    at += groups * bytes;
    return rows;
  };
  const at::Tensor codes = rows_of(1);
  const at::Tensor lengths = rows_of_bytes(rows_of(sizeof(uint32_t)), at::kInt);
  if (!are_all(codes.eq(int64_t{kBitmapCode})) || !are_all(lengths.eq(bitmap))) return {};
  const at::Tensor sets = rows_of(bitmap);
  return {sets, rows_of((message.numel() - at) / groups)};
}

at::Tensor SparseFormat::device_decode(const at::Tensor& message, const SparseShape& shape) const {
  const auto n = static_cast<int64_t>(shape.n);
  const auto k = static_cast<int64_t>(shape.k);
  const SparseParts parts = parts_of(message, shape);
  if (!parts.values.defined()) return {};
  const DeviceKernels* const kernels = kernels_of(message.device());
  if (kernels != nullptr && shape.n <= DeviceKernels::kMostElements) {
    const auto plain = values().plain();
    const at::Tensor lists = plain ? parts.values : values().composed_read(parts.values, k);
    if (!lists.defined()) return {};
    const at::Tensor bytes = plain ? lists : bytes_of_rows(lists);
    at::Tensor groups = kernels->read_sparse({parts.bitmaps, bytes}, n, k, plain.value_or(PlainValue::fp32));
    if (groups.defined()) return groups;
  }
  const at::Tensor kept = unpacked_sets(parts.bitmaps, n, k);
  return kept.defined() ? composed_read(parts.values, kept, shape) : kept;
}

bool SparseFormat::add_by(const DeviceKernels& kernels, const at::Tensor& message, const SparseShape& shape,
                          at::Tensor& sum) const {
  const SparseParts parts = parts_of(message, shape);
  return parts.values.defined() &&
         kernels.add_sparse(parts, static_cast<int64_t>(shape.k), *values().plain(), sum);
}

void SparseFormat::check_set(size_t group, const CodedSet& set, const SparseShape& shape) const {
  const auto& [code, bytes] = set;
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const size_t below = index_ == IndexCode::automatic ? bitmap - 1 : std::numeric_limits<size_t>::max();
  const unsigned r = kernels::rice_parameter(shape.n, shape.k);
  bool fits = false;
  if (code == kBitmapCode && allows(IndexCode::bitmap)) {
    fits = bytes.size() == bitmap;
  } else if (code == kRiceCode + r && allows(IndexCode::rice)) {
    fits = bytes.size() <= std::min(below, kernels::rice_bound(shape.n, shape.k, r));
  } else if (code == kInterlacedCode && allows(IndexCode::interlaced)) {
    fits = bytes.size() <= std::min(below, kernels::interlaced_bound(shape.n));
  } else {
    throw WireError("group {} has index code {}, which this codec does not use", group, code);
  }
  if (!fits) {
    throw WireError("group {} has an index set of {} bytes with index code {}", group, bytes.size(), code);
  }
}

std::span<const CodedSet> SparseFormat::read_sets(ByteReader& in, const SparseShape& shape) const {
  const auto codes = in.take(shape.groups);
  ByteReader lengths(in.take(shape.groups * sizeof(uint32_t)));
  const auto sets = own_sets(shape.groups);
  for (size_t group = 0; group < shape.groups; ++group) {
    sets[group] = {std::to_integer<uint8_t>(codes[group]), in.take(lengths.get<uint32_t>())};
    check_set(group, sets[group], shape);
  }
  return sets;
}

/// Reads groups of which take(group, mask, list) takes the positions and the bytes of the values.
template <class Take>
void SparseFormat::read_groups(ByteReader& in, const SparseShape& shape, const Take& take,
                               IndexSet* indices) const {
  if (indices != nullptr) indices->reset(shape);
  const auto sets = read_sets(in, shape);
  const size_t list = values().size(shape.k);
  const auto lists = in.take(shape.groups * list);
  for_each_group(shape, [&](size_t group) {
    const auto& [code, bytes] = sets[group];
    const auto mask = mask_for(group, shape, indices);
    const bool valid =
        code == kBitmapCode ? kernels::read_bitmap(bytes, shape.n, shape.k, mask)
        : code == kInterlacedCode
            ? kernels::read_interlaced(bytes, shape.n, shape.k, shape.width, own_interlace<WholeGroup>(), mask)
            : kernels::read_rice(bytes, shape.n, shape.k, code - kRiceCode, mask);
    if (!valid) throw WireError("group {} has no valid set of {} of {} positions", group, shape.k, shape.n);
    take(group, mask, lists.subspan(group * list, list));
  });
}

void SparseFormat::read_parts(ByteReader& in, const SparseShape& shape, std::span<std::byte> message,
                              IndexSet* indices) const {
  if (is_payload(shape, indices)) {
    std::ranges::copy(in.take(message.size()), message.begin());
    if (indices != nullptr) indices->reset(shape);
    return;
  }
  const size_t bitmap = kernels::bitmap_size(shape.n);
  const size_t list = values().size(shape.k);
  ByteWriter out(message);
  std::ranges::fill(out.claim(shape.groups), std::byte{kBitmapCode});
  for (size_t group = 0; group < shape.groups; ++group) out.put(static_cast<uint32_t>(bitmap));
  const auto bitmaps = out.claim(shape.groups * bitmap);
  const auto lists = out.claim(shape.groups * list);
  const auto take = [&](size_t group, std::span<const uint64_t> mask, std::span<const std::byte> values) {
    kernels::write_bitmap(mask, bitmaps.subspan(group * bitmap, bitmap));
    std::ranges::copy(values, lists.subspan(group * list, list).begin());
  };
  read_groups(in, shape, take, indices);
}

void SparseFormat::read(ByteReader& in, const SparseShape& shape, const SparseSink& sink,
                        const MessageContext& context, IndexSet* indices) const {
  const auto take = [&](size_t group, std::span<const uint64_t> mask, std::span<const std::byte> list) {
    const auto received = own_values(shape.k);
    values().read(list, context_of_list(context, group), received);
    sink.receive(group, mask, received);
  };
  read_groups(in, shape, take, indices);
}

}  // namespace strait
