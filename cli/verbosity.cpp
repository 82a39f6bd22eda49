#include "cli/verbosity.h"

#include <CLI/CLI.hpp>

namespace strait::cli {

void add_verbosity(CLI::App& verb, Verbosity& verbosity) {
  auto* quiet = verb.add_flag("-q,--quiet", verbosity.quiet, "Print only errors and the result");
  verb.add_flag("-v,--verbose", verbosity.verbose,
                "Print the costs of every boundary and stage after each epoch")
      ->excludes(quiet);
}

}  // namespace strait::cli
