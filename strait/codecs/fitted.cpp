#include <ATen/core/ivalue.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/tensor.h>

#include <cmath>

#include "strait/codecs/laws.h"
#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"

namespace strait {
namespace {

enum class Law { normal, laplace };

/// 2^b points that lie close where the law's density is high, in a group's mean and spread, rounded at random
/// to one of the two neighbours (docs/operators.md, "fitted"). Source: Fu et al. 2020 (TinyScript).
class Fitted : public LevelCodec {
 public:
  Fitted(CodecIdentity identity, Scope scope, unsigned bits, Law law)
      : LevelCodec(std::move(identity), scope, Header::offset_and_scale, bits, points_of(law, bits)),
        points_(points_of(law, bits)),
        law_(law) {}

 protected:
  Line line_of(std::span<const float> x) const override {
    const float mean = mean_of(x);
    return {mean, law_ == Law::normal ? deviation_of(x, mean) : mean_deviation_of(x, mean)};
  }

  Lines lines_of(const TensorGroups& groups) const override {
    const at::Tensor mean = means(groups);
    return {mean, law_ == Law::normal ? deviations(groups, mean) : mean_deviations(groups, mean)};
  }

  void write_codes(std::span<const float> x, const Line& line, const kernels::Dither& dither,
                   std::span<std::byte> out) const override {
    kernels::between_points(x, line.offset, line.scale, points(), bits(), dither, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const override {
    const at::Tensor all =
        at::tensor(at::ArrayRef<float>(points().data(), points().size()), groups.values.options());
    const at::Tensor t =
        over_scale(groups.values.sub(lines.offset), lines.scale)
            .clamp(static_cast<double>(points().front()), static_cast<double>(points().back()));
    const at::Tensor lower =
        at::bucketize(t, all.narrow(0, 1, all.size(0) - 2), /*out_int32=*/false, /*right=*/true);
    const auto point = [&](const at::Tensor& index) {
      return all.index_select(0, index.view(-1)).view(t.sizes());
    };
    const at::Tensor below = point(lower);
    const at::Tensor rest = t.sub(below).div(point(lower.add(1)).sub(below));
    return lower.add(groups.dither().lt(rest).to(at::kLong));
  }

 private:
  /// The quantiles of the density's cube root at the middles of 2^b equal shares, which leaves about the least
  /// square error (Panter and Dite 1951). The cube root of a normal density is one of sqrt(3) times the
  /// deviation, that of Laplace's one of 3 times the mean magnitude.
  static kernels::CodeTable points_of(Law law, unsigned bits) {
    kernels::CodeTable points{};
    const unsigned count = 1U << bits;
    for (unsigned i = 0; i < count; ++i) {
      const double share = (i + 0.5) / count;
      points[i] = static_cast<float>(law == Law::normal ? std::sqrt(3.0) * normal_quantile(share)
                                                        : 3 * laplace_quantile(share));
    }
    return points;
  }

  std::span<const float> points() const { return std::span(points_).first(size_t{1} << bits()); }

  kernels::CodeTable points_;
  Law law_;
};

}  // namespace

std::unique_ptr<Codec> make_fitted(CodecIdentity identity, OperatorSpec spec) {
  const unsigned bits = bits_from(spec, 1);
  const std::string law = spec.option("law", "normal");
  if (law != "normal" && law != "laplace") spec.reject("law", law, "normal or laplace");
  const Scope scope = Scope::from(spec, "sample");
  spec.finish();
  return std::make_unique<Fitted>(std::move(identity), scope, bits,
                                  law == "normal" ? Law::normal : Law::laplace);
}

}  // namespace strait
