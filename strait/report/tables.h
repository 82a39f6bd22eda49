#pragma once

#include <span>
#include <string_view>

#include "strait/report/run.h"

namespace strait::report {

/// The figures of a published table for a variant, in the unit of the table's metric.
struct Published {
  Value off;  ///< with compression off
  Value on;   ///< with compression on
};

/// Runs that differ in their seed alone.
struct Variant {
  std::string name;       ///< in its table
  Published published;    ///< empty where the sweep's file gives none
  std::vector<Run> runs;  ///< in the order of the sweep's file, or of the folders' names
};

/// Variants that are compared with one another.
struct Table {
  std::string name;               ///< of the sweep, or of the folder
  std::string title;              ///< for people
  std::vector<Variant> variants;  ///< in the order of the sweep's file, or of the folders' names
};

/// Reads the folders, each once. A run's folder adds a run to a first table, which has the runs' names as its
/// title, unless another table has it; a sweep's folder (with a sweep.json) is a table; a folder of runs is a
/// table by the folder's name; any other is searched for those, links left out. Throws InputError when there is
/// none, or when a file is not what a run or a sweep writes.
///
/// Runs of one name share a row where their configurations differ in the seed alone; any other has a row
/// `NAME (FOLDER)`. Sweeps of one name that have the same runs, by variant, seed and configuration, are one
/// table with that of each run which has come furthest; other tables that share a name or a title have their
/// folders behind it.
std::vector<Table> read_tables(std::span<const std::filesystem::path> folders);

/// The folders that a sweep.json in `folder` names. Throws InputError when it is not what a sweep writes.
std::vector<std::filesystem::path> folders_of_sweep(const std::filesystem::path& folder, std::string_view text);

/// The table of a sweep.json; the runs that it names are read from folders in `folder`.
Table parse_sweep(const std::filesystem::path& folder, std::string_view text);

}  // namespace strait::report
