#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace strait::test {

struct ProcessResult {
  int status = -1;  ///< exit status; 128 + the signal's number when one ended it
  std::string out;
  std::string err;
};

/// A program that runs, with an empty standard input. It is killed when the object goes before its end.
class Process {
 public:
  Process(const std::string& program, const std::vector<std::string>& arguments);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool has_ended();
  void send(int signal);

  /// Waits for the end.
  ProcessResult wait();

 private:
  TempDir dir_;
  pid_t id_ = -1;
  int state_ = 0;
  bool ended_ = false;
};

/// Runs a program and waits for its end.
ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace strait::test
