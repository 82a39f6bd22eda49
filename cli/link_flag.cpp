#include "cli/link_flag.h"

#include <CLI/CLI.hpp>

#include "strait/base/link_rate.h"

namespace strait::cli {

void add_link_flag(CLI::App& verb, std::optional<std::string>& link) {
  verb.add_option(
          "--link", link,
          "Emulate links: train as if each process sent at this rate, each message arriving this much later; "
          "short for --set pipeline.link=... (docs/distributed.md)")
      ->type_name("RATE[,LATENCY]");
}

void check_link_flag(const std::optional<std::string>& link) {
  if (link && !link->empty()) parse_link_rate(*link, "--link");
}

}  // namespace strait::cli
