#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "strait/data/images.h"

namespace strait {

/// Training pictures where no limit says otherwise.
inline constexpr int64_t kShapesTrainDefault = 4000;

/// Test pictures where no limit says otherwise.
inline constexpr int64_t kShapesTestDefault = 1000;

/// The most training pictures that a limit may ask for.
inline constexpr int64_t kShapesTrainMost = 50000;

/// The most test pictures that a limit may ask for.
inline constexpr int64_t kShapesTestMost = 10000;

/// The classes in the order of their labels.
inline constexpr std::array<std::string_view, 10> kShapeNames = {
    "disc", "ring", "square", "frame", "triangle", "cross", "star", "crescent", "bars", "corner"};

/// The two sets; they have no draw in common.
enum class ShapesSplit : uint64_t { train = 0, test = 1 };

/// The first `count` pictures of a split. Picture i depends on the split and i only and has label i % 10,
/// so that a larger set begins with a smaller one. Each shows one large shape in any position, size,
/// rotation and colour before a shaded background, between small scraps, under pixel noise. The same bytes
/// come out on every machine: the drawing uses nothing but correctly rounded float32 operations.
ImageRecords draw_shapes(ShapesSplit split, int64_t count);

/// Training and test set; a limit of 0 stands for 4,000 and 1,000 pictures, and a limit may go up to
/// 50,000 and 10,000. Throws InputError for another limit.
DataSplits load_shapes(const DataOptions& options);

}  // namespace strait
