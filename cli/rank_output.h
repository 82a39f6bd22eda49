#pragma once

#include <filesystem>
#include <string>

namespace strait::cli {

/// What one process of several prints, through a pipe, passed on line by line with `[RANK] ` before each.
class RankOutput {
 public:
  /// Throws Error.
  explicit RankOutput(int rank);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  /// Under this name a child of this process opens the pipe for writing, before it becomes another program.
  std::filesystem::path path() const;
  int descriptor() const { return read_end_; }  ///< readable when there is something

  /// Passes on the whole lines that have come.
  void pass_on();

  /// Passes on the rest, a last line without an end included.
  void finish();

 private:
  void print_line(const std::string& line) const;

  int rank_;
  int read_end_;
  int write_end_;  ///< so that the pipe has no end before the process has opened it
  std::string pending_;
};

}  // namespace strait::cli
