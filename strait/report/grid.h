#pragma once

#include <optional>
#include <string>
#include <vector>

#include "strait/report/tables.h"

namespace strait::report {

/// Two keys of the configuration whose values span a grid of a table's variants.
struct Grid {
  std::string down;                                ///< `compression.activations.codec`
  std::string across;                              ///< `compression.gradients.codec`
  std::vector<std::string> rows;                   ///< values of `down`, in the order of the variants
  std::vector<std::string> columns;                ///< values of `across`, likewise
  std::vector<std::vector<const Variant*>> cells;  ///< of the table, row by row; null where there is none
};

/// The largest grid of the table's variants: at least two values of each key, a variant in at least three
/// quarters of the cells and never two in one, and in it at least half of the variants. Whatever else these
/// differ in follows from one of the two values. Nothing where there is none. The table has to outlive it.
std::optional<Grid> find_grid(const Table& table);

}  // namespace strait::report
