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

/// The points of a sweep, crossed from the values of its keys, the last key's the fastest:
///
///     [grid]
///     train.optimizer.lr = [1e-4, 3e-4]
///     data.batch_size = [50, 100]
///
/// has four points. A key is named by its last part, or by its last two where another key of the grid ends
/// alike; in a text each character that a folder's name may not have becomes a hyphen.
class SweepGrid {
 public:
  /// Takes the table `grid` out of a sweep file that check_run_count() has seen; one point without a name
  /// where the file has none. Throws InputError where a value is no list, for a name that is longer than a
  /// folder's may be, and for a key that a grid cannot vary.
  explicit SweepGrid(TomlTable& root);

  /// Whether the file has no grid.
  bool is_empty() const { return axes_.empty(); }

  /// How many points there are.
  size_t size() const;

  /// A point, which is made now, so that those of a large grid need not be held together.
  GridPoint point(size_t index) const;

 private:
  /// A key of the grid and the values that it takes.
  struct Axis {
    std::vector<std::string> path;  ///< the key's parts
    TomlNode::Array values;
    Origin origin;
    std::vector<std::string> names;  ///< of the key with each value, such as `lr-0.001`
  };

  static void collect(TomlTable table, const std::vector<std::string>& prefix, std::vector<Axis>& axes);
  static std::string key_name(const Axis& axis, const std::vector<Axis>& axes);
  static std::string value_name(const TomlNode& value, const Axis& axis);
  static TomlTable layer_of(const Axis& axis, const TomlNode& value);

  std::vector<Axis> axes_;
};

/// Throws InputError where the file, whose name is for the message, asks for more than 10,000 runs: points of
/// the grid times variants times seeds. Counts what stands there and makes nothing.
void check_run_count(const TomlTable& root, const std::string& file);

/// Throws InputError where the variant sets a key that the grid's point sets.
void check_apart(const TomlTable& variant, const TomlTable& point);

}  // namespace strait
