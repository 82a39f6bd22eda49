#pragma once

#include <filesystem>
#include <string>

namespace strait::cli {

/// What one process of several prints, through a named pipe, passed on line by line with `[RANK] ` before each.
class RankOutput {
 public:
  /// Makes the pipe `path`, for the process to write to. Throws Error.
  RankOutput(std::filesystem::path path, int rank);
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  const std::filesystem::path& path() const { return path_; }
  int descriptor() const { return descriptor_; }  ///< readable when there is something

  /// Passes on the whole lines that have come.
  void pass_on();

  /// Passes on the rest, a last line without an end included.
  void finish();

 private:
  void print_line(const std::string& line) const;

  std::filesystem::path path_;
  int rank_;
  int descriptor_;
  std::string pending_;
};

}  // namespace strait::cli
