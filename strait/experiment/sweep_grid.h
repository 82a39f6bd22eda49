#pragma once

#include <string>
#include <vector>

#include "strait/formats/toml.h"

namespace strait {

/// One combination of a grid's values.
struct GridPoint {
  std::string name;  ///< of its keys and values, such as `lr-0.001-batch_size-50`; empty where there is no grid
  TomlTable layer;   ///< the keys with this point's values, to merge over a variant
};

/// Takes the table `grid` out of a sweep file and crosses its values, the last key's the fastest:
///
///     [grid]
///     train.optimizer.lr = [1e-4, 3e-4]
///     data.batch_size = [50, 100]
///
/// has four points. A key is named by its last part, or by its last two where another key of the grid ends
/// alike; in a text each character that a folder's name may not have becomes a hyphen. One point without a
/// name where the file has no grid. Throws InputError where a value is no list, for more than 10,000 points,
/// and for a key that a grid cannot vary.
std::vector<GridPoint> take_grid(TomlTable& root);

/// Throws InputError where the variant sets a key that the grid's point sets.
void check_apart(const TomlTable& variant, const TomlTable& point);

}  // namespace strait
