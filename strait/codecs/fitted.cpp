#include <ATen/core/ivalue.h>
#include <ATen/ops/bucketize.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "strait/codecs/laws.h"
#include "strait/codecs/level_codec.h"
#include "strait/codecs/moments.h"

namespace strait {
namespace {

using kernels::CodeTable;

/// A point in the middle of each of 2^b equal shares of a distribution.
template <class Quantile>
CodeTable middles(unsigned bits, const Quantile& quantile) {
  CodeTable points{};
  const unsigned count = 1U << bits;
  for (unsigned i = 0; i < count; ++i) points[i] = static_cast<float>(quantile((i + 0.5) / count));
  return points;
}

/// 2^b points that lie close where a law's density is high, in a group's mean and spread, rounded at random to
/// one of the two neighbours (docs/operators.md, "fitted"). They are the quantiles of the density's cube root
/// at the middles of 2^b equal shares, which leaves about the least square error of rounding to nearest (Panter
/// and Dite 1951). Source: Fu et al. 2020 (TinyScript).
class Fitted : public LevelCodec {
 public:
  Fitted(CodecIdentity identity, Scope scope, Header header, unsigned bits,
         const std::vector<CodeTable>& points)
      : LevelCodec(std::move(identity), scope, header, bits, points) {}

 protected:
  void write_codes(std::span<const float> x, const kernels::LineGroups& groups, const kernels::Dither& dither,
                   std::span<std::byte> out) const final {
    kernels::between_points(x, groups, tables(), bits(), dither, out);
  }

  at::Tensor codes_of(const TensorGroups& groups, const Lines& lines) const final {
    const at::Tensor points = units_of(lines);
    const int64_t last = points.size(1) - 1;
    const at::Tensor t = over_scale(groups.values.sub(lines.offset), lines.scale)
                             .clamp(points.narrow(1, 0, 1), points.narrow(1, last, 1));
    const at::Tensor lower = at::searchsorted(points.narrow(1, 1, last - 1).contiguous(), t.contiguous(),
                                              /*out_int32=*/false, /*right=*/true);
    const at::Tensor below = points.gather(1, lower);
    const at::Tensor rest = t.sub(below).div(points.gather(1, lower.add(1)).sub(below));
    return lower.add(groups.dither().lt(rest).to(at::kLong));
  }
};

/// The normal law, in units of the deviation: the cube root of its density is a normal one, sqrt(3) as wide.
class FittedNormal : public Fitted {
 public:
  FittedNormal(CodecIdentity identity, Scope scope, unsigned bits)
      : Fitted(std::move(identity), scope, Header::offset_and_scale, bits,
               {middles(bits, [](double share) { return std::sqrt(3.0) * normal_quantile(share); })}) {}

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    find_each(x, size, lines, mean_and_deviation);
  }

  Lines lines_of(const TensorGroups& groups) const override { return means_and_deviations(groups); }
};

/// Laplace's law, in units of the mean magnitude: the cube root of its density is one of it, 3 times as wide.
class FittedLaplace : public Fitted {
 public:
  FittedLaplace(CodecIdentity identity, Scope scope, unsigned bits)
      : Fitted(std::move(identity), scope, Header::offset_and_scale, bits,
               {middles(bits, [](double share) { return 3 * laplace_quantile(share); })}) {}

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    find_each(x, size, lines, [](std::span<const float> group) {
      const float mean = mean_of(group);
      return Line{mean, mean_deviation_of(group, mean)};
    });
  }

  Lines lines_of(const TensorGroups& groups) const override {
    const at::Tensor mean = means(groups);
    return {mean, mean_deviations(groups, mean)};
  }
};

/// A family of Weibull's laws of the magnitude, with either sign, in units of the deviation. A group has the
/// law whose share of the squared mean magnitude in the mean square is nearest to its own.
class FittedWeibull : public Fitted {
 public:
  FittedWeibull(CodecIdentity identity, Scope scope, unsigned bits)
      : Fitted(std::move(identity), scope, Header::offset_scale_and_table, bits, tables(bits)) {
    const auto share = [](size_t table) {
      const double mean = weibull_mean(shape(table));
      return mean * mean / weibull_mean_square(shape(table));
    };
    for (size_t i = 0; i < ends_.size(); ++i) ends_[i] = static_cast<float>((share(i) + share(i + 1)) / 2);
  }

 protected:
  void find_lines(std::span<const float> x, size_t size, std::span<Line> lines) const override {
    find_each(x, size, lines, [&](std::span<const float> group) {
      Line line = mean_and_deviation(group);
      const float ratio = mean_deviation_of(group, line.offset) / (line.scale == 0 ? 1 : line.scale);
      line.table =
          static_cast<uint8_t>(std::ranges::count_if(ends_, [=](float end) { return ratio * ratio >= end; }));
      return line;
    });
  }

  Lines lines_of(const TensorGroups& groups) const override {
    Lines lines = means_and_deviations(groups);
    const at::Tensor ratio = over_scale(mean_deviations(groups, lines.offset), lines.scale);
    const at::Tensor ends = at::tensor(at::ArrayRef<float>(ends_.data(), ends_.size()), ratio.options());
    lines.table = ratio.mul(ratio).ge(ends).sum(1, /*keepdim=*/true);
    return lines;
  }

 private:
  static constexpr size_t kShapes = 16;

  /// 0.5, 0.6 .. 2: 1 is Laplace's law, 2 Rayleigh's; a normal law is nearest to 1.3.
  static double shape(size_t table) { return static_cast<double>(table + 5) / 10; }

  static std::vector<CodeTable> tables(unsigned bits) {
    std::vector<CodeTable> all;
    for (size_t table = 0; table < kShapes; ++table) {
      const double deviation = std::sqrt(weibull_mean_square(shape(table)));
      all.push_back(
          middles(bits, [=](double share) { return weibull_root_quantile(shape(table), share) / deviation; }));
    }
    return all;
  }

  std::array<float, kShapes - 1> ends_{};  ///< where one table's shares end and the next one's begin
};

}  // namespace

std::unique_ptr<Codec> make_fitted(CodecIdentity identity, OperatorSpec spec) {
  const unsigned bits = bits_from(spec, 1);
  const std::string law = spec.option("law", "normal");
  const Scope scope = Scope::from(spec, "sample");
  if (law != "normal" && law != "laplace" && law != "weibull") {
    spec.reject("law", law, "normal, laplace or weibull");
  }
  spec.finish();
  if (law == "laplace") return std::make_unique<FittedLaplace>(std::move(identity), scope, bits);
  if (law == "weibull") return std::make_unique<FittedWeibull>(std::move(identity), scope, bits);
  return std::make_unique<FittedNormal>(std::move(identity), scope, bits);
}

}  // namespace strait
