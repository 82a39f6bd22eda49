#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): CLI11 chose it
class App;
}

namespace strait::cli {

/// How much a verb tells of its progress; at most one is set.
struct Verbosity {
  bool quiet = false;    ///< nothing but errors and the result
  bool verbose = false;  ///< the costs of every boundary and stage as well
};

/// Adds -q and -v to a verb. `verbosity` must outlive it.
void add_verbosity(CLI::App& verb, Verbosity& verbosity);

}  // namespace strait::cli
