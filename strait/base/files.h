#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "strait/base/error.h"

namespace strait {

/// Whether the reason of an error, an errno, is a disk that is full or fails.
bool is_of_disk(int reason);

/// Throws DiskError where the reason is one of a disk, else an error of that type; with this message.
template <class Otherwise = Error>
[[noreturn]] void fail_to_write(int reason, const std::string& message) {
  if (is_of_disk(reason)) throw DiskError("{}", message);
  throw Otherwise("{}", message);
}

/// Does the work with which somebody begins in a folder: where that cannot be written, the folder is a wrong
/// one. Throws InputError then, with the reason, but DiskError where a disk is full or fails.
void begin_in_folder(const std::function<void()>& work);

/// Takes the content of a file, part after part.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Lets `write` give the content to a new file beside `path` (make_beside()), makes it last on the disk and
/// then gives the file the name `path` in one step: a crash leaves the old content or the new, and so do others
/// that replace the file at the same time. Throws Error that names the file when it cannot be written, and
/// passes on what `write` throws; nothing is left behind then. A process that is killed meanwhile leaves a
/// `PATH.PID-COUNT.partial`, which nothing reads and anybody may remove; see remove_unfinished().
void replace_file(const std::filesystem::path& path, const std::function<void(const ByteSink&)>& write);

/// The same with the content in memory.
void replace_file(const std::filesystem::path& path, std::string_view content);

/// A file that was made.
struct NewFile {
  std::filesystem::path path;  ///< its name
  int descriptor = -1;         ///< open for writing; -1 where the file could not be made, and errno says why
};

/// Makes an empty file in the folder of `path`, `PATH.PID-COUNT.partial`, of a name that nothing has: neither
/// another process or thread, nor what one left behind. It opens no file that is there, and follows no link.
NewFile make_beside(const std::filesystem::path& path);

/// Removes what make_beside() made beside `path` and killed processes left. Nobody may be replacing the file
/// meanwhile. Throws Error.
void remove_unfinished(const std::filesystem::path& path);

/// A file that is written from its beginning to its end.
class OutputFile {
 public:
  /// Makes the file, or empties it. This and the others throw Error with the name.
  explicit OutputFile(const std::filesystem::path& path);

  /// Takes over an open file, whose descriptor may be that of NewFile; the name is for messages.
  OutputFile(int descriptor, std::string name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends the bytes.
  void write(std::span<const std::byte> bytes);

  /// Makes the content last on the disk and closes the file.
  void finish();

 private:
  void check(bool worked) const;

  std::string name_;
  int descriptor_;
};

/// Adds to the end of a file, which is made where there is none. Throws Error that names it; a part of the
/// content may be in it then.
void append_to_file(const std::filesystem::path& path, std::string_view content);

/// Makes the content of a file, or the names in a folder, last on the disk. Throws Error.
void sync_to_disk(const std::filesystem::path& path);

/// A regular file open for reading, whose size was taken once.
class InputFile {
 public:
  /// Throws InputError when there is no such file or it is not a regular one: a pipe could keep the reader
  /// waiting, and a device never ends.
  explicit InputFile(const std::filesystem::path& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The path, for messages.
  const std::string& name() const { return name_; }

  /// Bytes, when the file was opened.
  uint64_t size() const { return size_; }

  /// Fills `out` with the bytes from `offset` on. Throws InputError that names the file and the offset.
  void read(uint64_t offset, std::span<std::byte> out) const;

 private:
  std::string name_;
  int descriptor_;
  uint64_t size_ = 0;
};

// The most bytes of files that are parsed as a whole.

/// Of a configuration.
inline constexpr uint64_t kConfigBytesMost = uint64_t{1} << 20;

/// Of a JSON document.
inline constexpr uint64_t kJsonBytesMost = uint64_t{64} << 20;

/// Of metrics.jsonl, with its line per epoch.
inline constexpr uint64_t kMetricsBytesMost = uint64_t{256} << 20;

/// Whether a file or a folder of that name is there. Throws InputError where that cannot be told, as of links
/// that lead in a circle.
bool is_there(const std::filesystem::path& path);

/// Whether a regular file is there. Throws InputError likewise.
bool has_file(const std::filesystem::path& path);

/// Whether a folder is there. Throws InputError likewise.
bool has_folder(const std::filesystem::path& path);

/// The path, or else the nearest folder above it that is there: where it would be made.
std::filesystem::path nearest_there(const std::filesystem::path& path);

/// The whole content of a regular file. Throws InputError, also when it has more than `most` bytes, or more
/// than memory has room for.
std::string read_whole(const std::filesystem::path& path, uint64_t most = std::numeric_limits<uint64_t>::max());

}  // namespace strait
