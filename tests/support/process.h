#pragma once

#include <sys/types.h>

#include <chrono>
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
  /// `variables` are NAME=VALUE, on top of this program's environment.
  Process(const std::string& program, const std::vector<std::string>& arguments,
          const std::vector<std::string>& variables = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t id() const { return id_; }
  bool has_ended();
  void send(int signal);

  /// Waits for the end.
  ProcessResult wait();

  /// The same; kills the process where it still runs after the limit.
  ProcessResult wait(std::chrono::milliseconds limit);

 private:
  TempDir dir_;
  pid_t id_ = -1;
  int state_ = 0;
  bool ended_ = false;
};

/// Runs a program and waits for its end.
ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& variables = {});

}  // namespace strait::test
