#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string_view>

namespace strait {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4).
uint32_t crc32c(std::string_view bytes);

/// Writes scalars for TensorBoard into a new file `events.out.tfevents.TIME.HOST` of a folder. The file
/// is a sequence of TFRecords, each an Event of tensorflow/core/util/event.proto, encoded by hand: a second
/// libprotobuf in the process clashes with the copy inside LibTorch.
///
/// A record goes to the end of the file as a whole or, after a crash, is a torn tail that TensorBoard skips.
/// Throws Error that names the file when it cannot be written.
class TensorboardWriter {
 public:
  /// Makes the folder where it does not exist. Never touches a file that is there already.
  explicit TensorboardWriter(const std::filesystem::path& folder);
  ~TensorboardWriter() = default;  // what was not flushed is written, errors then go unnoticed

  /// The file that is written.
  const std::filesystem::path& path() const { return path_; }

  /// `step` is not negative. A value that is not finite is written as it is.
  void add_scalar(std::string_view tag, int64_t step, float value);

  /// Hands everything to the operating system, so that a running TensorBoard sees it.
  void flush();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void append(std::string_view event);
  [[noreturn]] void fail(const char* what) const;

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace strait
