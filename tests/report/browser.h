#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "strait/report/writers.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/temp_dir.h"

namespace strait::report {

/// Opens pages in a browser that finds no address but this machine's.
class Browser : public testing::Test {
 protected:
  /// What becomes of the page once its scripts have run. Leaves net.json, the browser's log of requests.
  std::string open(const std::string& page);

  /// The addresses that the page asked for. What the browser wants for itself has "not an origin" as initiator.
  std::vector<std::string> requests();

  /// The page of the sample sweep.
  std::string sample();

  test::TempDir dir_;
};

/// Whether the text has that part.
bool has(const std::string& text, const std::string& part);

/// How many series the library has drawn on each canvas, in their order.
std::vector<int> drawn(const std::string& dom);

/// The page with a script of the test's at its end, which its policy is told of.
std::string driven(std::string page, const std::string& script);

/// A run of one epoch with an accuracy for compression off and one for on, whose 2 steps sent `wire` bytes.
Run scored_run(uint64_t seed, double off, double on, double wire);

}  // namespace strait::report
