#include <ATen/core/ivalue.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

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
    if (!are_finite(x)) reject();
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const Grid grid = scope_.grid(meta_of(x));
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
    const at::Tensor seen = inner_->reconstruct(scope_.from_order(grid.from_groups(tamed), x), context);
    const at::Tensor seen_groups = grid.as_groups(scope_.in_order(seen), Grid::Filler::zeros);
    const at::Tensor whole =
        seen_groups.scatter(1, least, groups.gather(1, least)).scatter(1, greatest, groups.gather(1, greatest));
    return scope_.from_order(grid.from_groups(whole), x);
  }

  bool is_row_wise() const override { return scope_.is_row_wise() && inner_->is_row_wise(); }

 protected:
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    const PayloadSize rest = inner_->payload_size(meta);
    const Grid grid = scope_.grid(meta);
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
