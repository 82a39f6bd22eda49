#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "strait/transport/socket.h"

namespace strait {

/// Gets a line that a rank prints, without its end.
using OnRankLine = std::function<void(int rank, const std::string& line)>;

/// What one process of several prints, through a pipe, passed on line by line.
class RankOutput {
 public:
  /// Throws Error.
  RankOutput(int rank, OnRankLine on_line);

  /// Under this name a child of this process opens the pipe for writing, before it becomes another program.
  std::filesystem::path path() const;
  int descriptor() const { return read_end_.descriptor(); }  ///< readable when there is something

  /// Passes on the whole lines that have come.
  void pass_on();

  /// Passes on the rest, a last line without an end included.
  void finish();

 private:
  int rank_;
  OnRankLine on_line_;
  Socket read_end_;
  Socket write_end_;  ///< so that the pipe has no end before the process has opened it
  std::string pending_;
};

}  // namespace strait
