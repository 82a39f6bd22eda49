#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strait/config/config.h"

namespace strait {

/// What a published table says of a variant, with compression off and on: accuracies in percent, of text
/// perplexities.
struct PaperFigures {
  std::optional<double> off;  ///< not all tables have it
  double on = 0;              ///< with compression on
};

/// One run of a sweep.
struct SweepRun {
  std::string variant;  ///< its name in the file, with the point's of a grid
  Config config;        ///< its name is the run's: the variant's, with the seed where a variant has several
  std::optional<PaperFigures> paper;  ///< nothing where the file gives none
  std::string row = {};  ///< the variant's name as the file has it; empty where a grid stands alone
};

/// A set of runs that differ in a few keys.
struct Sweep {
  std::string name;            ///< also the name of the sweep's folder
  std::string title;           ///< for people; the name where the file has none
  std::vector<SweepRun> runs;  ///< variant by variant, the seeds of one together; names differ
};

/// Reads a sweep file: a configuration (`name`, a `base` or tables of its own) with one `[[variants]]` per
/// run, each of which has a `name`, may have `paper = { off = 93.1, on = 92.95 }` (or `on` alone), and has any
/// keys of a configuration, merged over the others. With a `grid` (sweep_grid.h) every variant runs at each of
/// its points; with `seeds = [...]` every variant runs once for each; with more than one, `-seedN` is added to
/// the names. Two runs that would compute the same are an error. Throws InputError.
Sweep load_sweep(const std::filesystem::path& path);

/// The places in sweep.runs of the runs of the named variants with these seeds, in the sweep's order; empty
/// lists mean all variants and all seeds. With a grid the name that the file gives a variant means all its
/// points. Throws InputError about a name or a seed that no run has, and where no run has both.
std::vector<size_t> runs_of(const Sweep& sweep, std::span<const std::string> variants,
                            std::span<const uint64_t> seeds = {});

}  // namespace strait
