#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/maximum.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/codecs/composed.h"
#include "strait/codecs/quant_options.h"

namespace strait {
namespace {

/// The least element of a group and the greatest of the others, which is the least itself where there are no
/// others.
struct Spikes {
  size_t least = 0;     ///< its place, the first of equal ones
  size_t greatest = 0;  ///< likewise
};

Spikes spikes_of(std::span<const float> x) {
  Spikes spikes;
  for (size_t i = 1; i < x.size(); ++i) {
    if (x[i] < x[spikes.least]) spikes.least = i;
  }
  if (x.size() == 1) return spikes;
  spikes.greatest = spikes.least == 0 ? 1 : 0;
  for (size_t i = spikes.greatest + 1; i < x.size(); ++i) {
    if (i != spikes.least && x[i] > x[spikes.greatest]) spikes.greatest = i;
  }
  return spikes;
}

/// What stands in the spikes' places meanwhile: the least of the rest, or 0.
float least_of_rest(std::span<const float> x, const Spikes& spikes) {
  float least = std::numeric_limits<float>::infinity();
  for (size_t i = 0; i < x.size(); ++i) {
    if (i != spikes.least && i != spikes.greatest) least = std::min(least, x[i]);
  }
  return x.size() > 2 ? least : 0;
}

[[noreturn]] void reject() { throw NumericError("a value is not finite"); }

/// The least and the greatest element of each group as they are, with their places; the rest as the inner codec
/// sends it (docs/operators.md, "quant").
class Spiked : public Codec {
 public:
  Spiked(CodecIdentity identity, Scope scope, std::shared_ptr<const Codec> inner)
      : Codec(std::move(identity)), scope_(scope), inner_(std::move(inner)) {}

  at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const override {
    if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
    const Grid grid = scope_.grid(meta_of(x));
    const auto [spikes, rest] = parted(x, grid);
    return whole(spikes, inner_->reconstruct(rest, context), grid);
  }

  at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const override {
    const Grid grid = scope_.grid(meta_of(x));
    const auto [spikes, rest] = parted(x, grid);
    const at::Tensor payload = inner_->device_encode(rest, context);
    if (!payload.defined()) return {};
    std::vector<at::Tensor> bytes;
    for (const SpikeTensors& side : spikes) {
      bytes.push_back(bytes_of_rows(side.values));
      bytes.push_back(bytes_of_rows(side.places).narrow(1, 0, static_cast<int64_t>(place_size(grid))));
    }
    return at::cat({at::cat(bytes, 1).view(-1), payload});
  }

  at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                           const MessageContext& context) const override {
    const Grid grid = scope_.grid(meta);
    const auto groups = static_cast<int64_t>(grid.groups());
    const auto size = static_cast<int64_t>(spikes_size(grid));
    const auto spikes = spikes_in(payload.narrow(0, 0, groups * size).view({groups, size}), grid);
    if (!spikes) return {};
    // The copy begins where numbers may begin.
    const at::Tensor rest = payload.narrow(0, groups * size, payload.numel() - groups * size).clone();
    const at::Tensor seen = inner_->device_decode(rest, meta, context);
    return seen.defined() ? whole(*spikes, seen, grid) : seen;
  }

  bool is_row_wise() const override { return scope_.is_row_wise() && inner_->is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const PayloadSize rest = inner_->payload_size(meta);
    const Grid grid = scope_.grid(meta);
    if (grid.group_size > size_t{1} << 32) {  // a place has 4 bytes at most
      throw InputError("quant with spikes: expected groups of at most 2^32 elements, found {}",
                       grid.group_size);
    }
    return {grid.groups() * spikes_size(grid) + rest.bound, rest.exact};
  }

  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                 ByteWriter& out) const override {
    const Grid grid = scope_.grid(meta);
    const at::Tensor like = Scope::tensor_over(x, meta);
    const at::Tensor ordered = scope_.in_order(like).clone();
    const std::span<float> elements(ordered.data_ptr<float>(), x.size());
    for (size_t i = 0; i < grid.groups(); ++i) {
      const Grid::Group group = grid.group(i);
      const auto part = elements.subspan(group.begin, group.size);
      const Spikes spikes = spikes_of(part);
      const float fill = least_of_rest(part, spikes);
      for (const size_t place : {spikes.least, spikes.greatest}) {
        if (!std::isfinite(part[place])) reject();
        out.put(part[place]);
        put_place(place, grid, out);
      }
      part[spikes.least] = part[spikes.greatest] = fill;
    }
    inner_->write(scope_.from_order(ordered, like), context, out);
  }

  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                 std::span<float> out) const override {
    const Grid grid = scope_.grid(meta);
    ByteReader spikes(in.take(grid.groups() * spikes_size(grid)));
    const at::Tensor seen = inner_->read(in, meta, context).tensor;
    const at::Tensor ordered = scope_.in_order(seen);
    const std::span<float> elements(ordered.data_ptr<float>(), out.size());
    for (size_t i = 0; i < grid.groups(); ++i) {
      const Grid::Group group = grid.group(i);
      read_spikes(spikes, grid, elements.subspan(group.begin, group.size));
    }
    Scope::tensor_over(out, meta).copy_(scope_.from_order(ordered, seen));
  }

 private:
  /// A spike of each group, on its device.
  struct SpikeTensors {
    at::Tensor values;  ///< float32 [G, 1]
    at::Tensor places;  ///< in the groups, int64 [G, 1]
  };
  using BothSpikes = std::array<SpikeTensors, 2>;  ///< the least, the greatest

  /// The spikes of a message, and the message with something else in their places. Throws NumericError.
  std::pair<BothSpikes, at::Tensor> parted(const at::Tensor& x, const Grid& grid) const {
    if (!are_finite(x)) reject();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const at::Tensor groups = grid.as_groups(scope_.in_order(x), Grid::Filler::zeros);
    const at::Tensor sizes = grid.sizes(x);
    const at::Tensor is_filler = at::arange(groups.size(1), sizes.options()).ge(sizes);
    const auto first_of = [](const at::Tensor& values, const at::Tensor& value) {
      return values.eq(value).to(at::kInt).argmax(1, /*keepdim=*/true);
    };
    const at::Tensor for_least = groups.masked_fill(is_filler, kInfinity);
    const at::Tensor least = first_of(for_least, for_least.amin(1, /*keepdim=*/true));
    const at::Tensor for_greatest = groups.masked_fill(is_filler, -kInfinity).scatter(1, least, -kInfinity);
    const at::Tensor greatest = first_of(for_greatest, for_greatest.amax(1, /*keepdim=*/true));
    const at::Tensor rest = for_least.scatter(1, least, kInfinity).scatter(1, greatest, kInfinity);
    const at::Tensor least_of_rest = rest.amin(1, /*keepdim=*/true);
    const at::Tensor fill = least_of_rest.masked_fill(least_of_rest.isinf(), 0);
    const at::Tensor tamed = groups.scatter(1, least, fill).scatter(1, greatest, fill);
    return {{SpikeTensors{groups.gather(1, least), least}, SpikeTensors{groups.gather(1, greatest), greatest}},
            scope_.from_order(grid.from_groups(tamed), x)};
  }

  /// The message of which the inner codec has seen the rest.
  at::Tensor whole(const BothSpikes& spikes, const at::Tensor& seen, const Grid& grid) const {
    at::Tensor groups = grid.as_groups(scope_.in_order(seen), Grid::Filler::zeros);
    for (const auto& [values, places] : spikes) groups = groups.scatter(1, places, values);
    return scope_.from_order(grid.from_groups(groups), seen);
  }

  /// What the bytes of each group's spikes say, uint8 [G, spikes_size()]; nothing for what read_spikes()
  /// refuses.
  static std::optional<BothSpikes> spikes_in(const at::Tensor& bytes, const Grid& grid) {
    constexpr auto kValue = static_cast<int64_t>(sizeof(float));
    constexpr auto kPlace = static_cast<int64_t>(sizeof(int64_t));
    const auto place = static_cast<int64_t>(place_size(grid));
    BothSpikes spikes;
    int64_t begin = 0;
    for (SpikeTensors& side : spikes) {
      side.values = rows_of_bytes(bytes.narrow(1, begin, kValue), at::kFloat);
      const at::Tensor low = bytes.narrow(1, begin + kValue, place);
      side.places = rows_of_bytes(at::constant_pad_nd(low, {0, kPlace - place}), at::kLong);
      begin += kValue + place;
    }
    const auto& [least, greatest] = spikes;
    const at::Tensor sizes = grid.sizes(bytes);
    const at::Tensor in_order = least.values.isfinite()
                                    .logical_and(greatest.values.isfinite())
                                    .logical_and(least.values.le(greatest.values));
    const at::Tensor are_apart = least.places.ne(greatest.places).logical_or(sizes.eq(1));
    const at::Tensor are_inside = at::maximum(least.places, greatest.places).lt(sizes);
    if (!are_all(in_order.logical_and(are_apart).logical_and(are_inside))) return std::nullopt;
    return spikes;
  }

  /// Bytes of a place in a group.
  static size_t place_size(const Grid& grid) {
    if (grid.group_size <= size_t{1} << 8) return 1;
    return grid.group_size <= size_t{1} << 16 ? 2 : 4;
  }

  static size_t spikes_size(const Grid& grid) { return 2 * (sizeof(float) + place_size(grid)); }

  static void put_place(size_t place, const Grid& grid, ByteWriter& out) {
    std::memcpy(out.claim(place_size(grid)).data(), &place, place_size(grid));
  }

  static size_t get_place(const Grid& grid, ByteReader& in) {
    size_t place = 0;
    std::memcpy(&place, in.take(place_size(grid)).data(), place_size(grid));
    return place;
  }

  /// Puts a group's spikes into their places.
  static void read_spikes(ByteReader& in, const Grid& grid, std::span<float> group) {
    const auto least = in.get<float>();
    const size_t place_of_least = get_place(grid, in);
    const auto greatest = in.get<float>();
    const size_t place_of_greatest = get_place(grid, in);
    const bool are_apart = place_of_least != place_of_greatest || group.size() == 1;
    if (!std::isfinite(least) || !std::isfinite(greatest) || least > greatest || !are_apart ||
        std::max(place_of_least, place_of_greatest) >= group.size()) {
      throw WireError("{} at {} and {} at {} are not the ends of {} elements", least, place_of_least, greatest,
                      place_of_greatest, group.size());
    }
    group[place_of_least] = least;
    group[place_of_greatest] = greatest;
  }

  Scope scope_;
  std::shared_ptr<const Codec> inner_;
};

}  // namespace

std::unique_ptr<Codec> make_spiked(CodecIdentity identity, Scope scope, std::shared_ptr<const Codec> inner) {
  return std::make_unique<Spiked>(std::move(identity), scope, std::move(inner));
}

}  // namespace strait
