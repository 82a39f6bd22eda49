#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strait/experiment/config.h"

namespace strait {

/// A set of runs that differ in a few keys.
struct Sweep {
  std::string name;          ///< also the name of the sweep's folder
  std::vector<Config> runs;  ///< variant by variant, the seeds of one together; names differ
};

/// Reads a sweep file: a configuration (`name`, a `base` or tables of its own) with one `[[variants]]` a
/// run, each of which has a `name` and any keys of a configuration, merged over the others. With
/// `seeds = [...]` every variant runs once for each; with more than one, `-seedN` is added to the names.
/// Throws InputError.
Sweep load_sweep(const std::filesystem::path& path);

}  // namespace strait
