#pragma once

#include <string>
#include <vector>

namespace strait::test {

struct ProcessResult {
  int status = -1;  ///< exit status; 128 + the signal's number when one ended it
  std::string out;
  std::string err;
};

/// Runs a program with an empty standard input and waits for its end.
ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace strait::test
