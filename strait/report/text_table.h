#pragma once

#include <string>
#include <vector>

#include "strait/report/grid.h"
#include "strait/report/statistics.h"

namespace strait::report {

/// A table as people read it, whatever it is written in. A missing number is "–".
struct TextTable {
  /// What stands over a column.
  struct Column {
    std::string group;         ///< stands over neighbours of the same group; may be empty
    std::string label;         ///< what its cells are
    bool is_number = true;     ///< set to the right
    std::string measure = {};  ///< of means over seeds what they are of: `score off`, `loss live`
  };
  std::vector<Column> columns;                 ///< from left to right
  std::vector<std::vector<std::string>> rows;  ///< one cell per column
  std::vector<std::vector<Value>> numbers;     ///< the cells' as they are; empty for a text
};

/// A row per variant; the first column is its name. Published figures have columns where there are any. Scores
/// have that many decimals.
TextTable result_table(const Table& table, int decimals = 2);

/// A row per variant and boundary: bytes per average step of the last epoch. No rows before the first epoch.
TextTable traffic_table(const Table& table);

/// A row for each value of one key, a column for each of the other, in the cells mean and standard error of the
/// last epoch in that mode.
TextTable crossed_table(const Grid& grid, const Metric& metric, const Scoring& scoring);

/// `done`, or `3 of 5 done, 1 diverged, 1 running` where the runs differ.
std::string status_text(const std::vector<StatusCount>& statuses);

/// The days from the first to the last time at which a run's files were written, and what else the runs
/// were made with: `2026-01-31`, `2026-01-31 to 2026-02-02`, each code version and machine once.
struct Origins {
  std::string days;                        ///< first to last
  std::vector<std::string> code_versions;  ///< without repetition
  std::vector<std::string> machines;       ///< without repetition
};

/// The origins of all runs of the tables.
Origins origins_of(const std::vector<Table>& tables);

}  // namespace strait::report
