#include "strait/data/shapes.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "strait/base/random.h"
#include "strait/data/kinds.h"
#include "strait/data/limits.h"

namespace strait {
namespace {

constexpr uint64_t kShapesSeed = 0x7368617065730001;  // another value draws other pictures
constexpr Normalisation kShapesNormalisation{{0.5F, 0.5F, 0.5F}, {0.25F, 0.25F, 0.25F}};
constexpr float kSide = static_cast<float>(kImageSide);

enum class ShapeKind : uint8_t {
  disc,
  ring,
  square,
  frame,
  triangle,
  cross,
  star,
  crescent,
  bars,
  corner,
  line
};

struct Point {
  float x;
  float y;
};

using Colour = std::array<float, kImageChannels>;
using Canvas = std::array<float, kImageBytes>;

/// Where a shape stands: its unit circle is turned, stretched to `radius` and moved to `centre`.
struct Placement {
  Point centre;
  Point axis;    ///< unit vector that the shape's x axis is turned to
  Point radius;  ///< in pixels, along the shape's x and y axis
};

float between(CounterRandom& random, float low, float high) { return low + (high - low) * random.uniform(); }

float square_box(Point p) { return std::max(std::abs(p.x), std::abs(p.y)); }

/// How many of the `normals` have the point on their near side, at most `distance` from the centre.
template <size_t N>
int near_sides(const std::array<Point, N>& normals, float distance, Point p) {
  int count = 0;
  for (const Point normal : normals) count += normal.x * p.x + normal.y * p.y <= distance ? 1 : 0;
  return count;
}

// Directions at every 120 and every 72 degrees, written out so that no libm takes part.
constexpr std::array<Point, 3> kTriangleSides = {{{0, 1}, {0.8660254F, -0.5F}, {-0.8660254F, -0.5F}}};
constexpr std::array<Point, 5> kStarSides = {{{0, 1},
                                              {0.95105652F, 0.30901699F},
                                              {0.58778525F, -0.80901699F},
                                              {-0.58778525F, -0.80901699F},
                                              {-0.95105652F, 0.30901699F}}};

/// Whether the point, in the shape's own coordinates, belongs to the shape.
bool inside(ShapeKind kind, Point p) {
  const float square = p.x * p.x + p.y * p.y;
  const float ax = std::abs(p.x);
  const float ay = std::abs(p.y);
  switch (kind) {
    case ShapeKind::disc:
      return square <= 0.8F;
    case ShapeKind::ring:
      return square <= 0.9F && square >= 0.3F;
    case ShapeKind::square:
      return square_box(p) <= 0.78F;
    case ShapeKind::frame:
      return square_box(p) <= 0.85F && square_box(p) >= 0.45F;
    case ShapeKind::triangle:
      return near_sides(kTriangleSides, 0.52F, p) == 3;
    case ShapeKind::cross:
      return (ax <= 0.3F && ay <= 0.95F) || (ay <= 0.3F && ax <= 0.95F);
    case ShapeKind::star:
      return square <= 1.2F && near_sides(kStarSides, 0.36F, p) >= 4;
    case ShapeKind::crescent:
      return square <= 0.95F && (p.x - 0.5F) * (p.x - 0.5F) + p.y * p.y >= 0.6F;
    case ShapeKind::bars:
      return ax <= 0.9F && (ay <= 0.18F || (ay >= 0.54F && ay <= 0.9F));
    case ShapeKind::corner:
      return square_box(p) <= 0.85F && (p.x <= -0.2F || p.y <= -0.2F);
    case ShapeKind::line:
      return ax <= 1.0F && ay <= 0.3F;
  }
  return false;
}

/// The share of the pixel's four quarters whose centre the shape covers.
float coverage(ShapeKind kind, const Placement& at, int64_t x, int64_t y) {
  int covered = 0;
  for (const float dy : {0.25F, 0.75F}) {
    for (const float dx : {0.25F, 0.75F}) {
      const Point p{static_cast<float>(x) + dx - at.centre.x, static_cast<float>(y) + dy - at.centre.y};
      const Point turned{(p.x * at.axis.x + p.y * at.axis.y) / at.radius.x,
                         (p.y * at.axis.x - p.x * at.axis.y) / at.radius.y};
      covered += inside(kind, turned) ? 1 : 0;
    }
  }
  return static_cast<float>(covered) * 0.25F;
}

void blend(Canvas& canvas, int64_t pixel, const Colour& colour, float amount) {
  for (int64_t channel = 0; channel < kImageChannels; ++channel) {
    float& value = canvas[static_cast<size_t>(channel * kPlanePixels + pixel)];
    value += (colour[static_cast<size_t>(channel)] - value) * amount;
  }
}

void paint(Canvas& canvas, ShapeKind kind, const Placement& at, const Colour& colour) {
  const float reach = 1.2F * std::max(at.radius.x, at.radius.y) + 1.0F;
  const auto clip = [](float value) { return static_cast<int64_t>(std::clamp(value, 0.0F, kSide)); };
  for (int64_t y = clip(at.centre.y - reach); y < clip(at.centre.y + reach); ++y) {
    for (int64_t x = clip(at.centre.x - reach); x < clip(at.centre.x + reach); ++x) {
      const float amount = coverage(kind, at, x, y);
      if (amount > 0) blend(canvas, y * kImageSide + x, colour, amount);
    }
  }
}

Colour draw_colour(CounterRandom& random, float low, float high) {
  Colour colour;
  for (float& value : colour) value = between(random, low, high);
  return colour;
}

/// A direction at most 2 atan(`most`) from the x axis, by the half-angle formulas, which need no libm.
Point draw_direction(CounterRandom& random, float most) {
  const float t = between(random, -most, most);
  const float scale = 1.0F / (1.0F + t * t);
  return {(1.0F - t * t) * scale, 2.0F * t * scale};
}

/// Shades the whole picture from one colour to another along a random direction.
void paint_ground(Canvas& canvas, CounterRandom& random, const Colour& from, const Colour& to) {
  const Point axis = draw_direction(random, 4.0F);
  for (int64_t y = 0; y < kImageSide; ++y) {
    for (int64_t x = 0; x < kImageSide; ++x) {
      const Point p{static_cast<float>(x) - 15.5F, static_cast<float>(y) - 15.5F};
      const float along = 0.5F + (p.x * axis.x + p.y * axis.y) / 44.0F;
      const int64_t pixel = y * kImageSide + x;
      blend(canvas, pixel, from, 1.0F);
      blend(canvas, pixel, to, along);
    }
  }
}

void paint_scraps(Canvas& canvas, CounterRandom& random, uint64_t count) {
  constexpr std::array<ShapeKind, 4> kScraps = {ShapeKind::disc, ShapeKind::square, ShapeKind::triangle,
                                                ShapeKind::line};
  for (; count > 0; --count) {
    const ShapeKind kind = kScraps[random.below(kScraps.size())];
    const float radius = between(random, 1.5F, kind == ShapeKind::line ? 5.0F : 3.2F);
    const Point centre{between(random, 0, kSide), between(random, 0, kSide)};
    const Point axis = draw_direction(random, 1.0F);
    paint(canvas, kind, {centre, axis, {radius, radius}}, draw_colour(random, 20.0F, 235.0F));
  }
}

void paint_main_shape(Canvas& canvas, CounterRandom& random, ShapeKind kind) {
  const float radius = between(random, 7.5F, 12.0F);
  const float stretch = between(random, 0.8F, 1.2F);
  const Point centre{between(random, 11.0F, kSide - 11.0F), between(random, 11.0F, kSide - 11.0F)};
  const Point axis = draw_direction(random, 0.3F);
  const Placement at{centre, axis, {radius * stretch, radius / stretch}};
  paint(canvas, kind, at, draw_colour(random, 90.0F, 250.0F));
}

/// Adds noise of about normal distribution (sums of four bytes) and rounds to bytes.
void finish(const Canvas& canvas, CounterRandom& random, float deviation, uint8_t* out) {
  constexpr float kSumMean = 510.0F;
  constexpr float kSumDeviation = 147.8F;
  const float scale = deviation / kSumDeviation;
  uint64_t word = 0;
  for (size_t i = 0; i < canvas.size(); ++i) {
    word = i % 2 == 0 ? random.next() : word >> 32;
    const auto sum = (word & 255) + (word >> 8 & 255) + (word >> 16 & 255) + (word >> 24 & 255);
    const float value = canvas[i] + (static_cast<float>(sum) - kSumMean) * scale;
    out[i] = static_cast<uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
  }
}

void draw_picture(CounterRandom random, ShapeKind kind, uint8_t* out) {
  Canvas canvas{};
  const Colour from = draw_colour(random, 10.0F, 130.0F);
  paint_ground(canvas, random, from, draw_colour(random, 10.0F, 130.0F));
  paint_scraps(canvas, random, 2 + random.below(4));
  paint_main_shape(canvas, random, kind);
  paint_scraps(canvas, random, random.below(3));
  const float deviation = between(random, 10.0F, 50.0F);
  finish(canvas, random, deviation, out);
}

std::shared_ptr<const Dataset> make_split(ShapesSplit split, int64_t count, bool augment) {
  return std::make_shared<ImageDataset>(draw_shapes(split, count), kShapesNormalisation, augment);
}

}  // namespace

ImageRecords draw_shapes(ShapesSplit split, int64_t count) {
  ImageRecords records;
  records.pixels.resize(static_cast<size_t>(count * kImageBytes));
  records.labels.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    const auto label = static_cast<uint8_t>(i % static_cast<int64_t>(kShapeNames.size()));
    const CounterRandom random(make_key(kShapesSeed, static_cast<uint64_t>(split), i));
    draw_picture(random, static_cast<ShapeKind>(label), records.pixels.data() + i * kImageBytes);
    records.labels[static_cast<size_t>(i)] = label;
  }
  return records;
}

DataSplits load_shapes(const DataOptions& options) {
  const int64_t train = limited("data.train_limit", options.train_limit, kShapesTrainMost);
  const int64_t test = limited("data.test_limit", options.test_limit, kShapesTestMost);
  return {make_split(ShapesSplit::train, options.train_limit == 0 ? kShapesTrainDefault : train,
                     options.settings.flag("augment")),
          make_split(ShapesSplit::test, options.test_limit == 0 ? kShapesTestDefault : test, false)};
}

DataKind shapes_kind() {
  DataKind kind;
  kind.name = "shapes";
  kind.task = "classification";
  kind.keys = {augment_key()};
  kind.is_in_files = false;
  kind.form = [](const DataOptions&) -> SampleForm {
    return {{kImageChannels, kImageSide, kImageSide}, std::ssize(kShapeNames)};
  };
  kind.load = load_shapes;
  return kind;
}

}  // namespace strait
