#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "strait/download/digest.h"

namespace strait {

/// Called now and then while bytes arrive; `total` is 0 while the length is not known. A return value of
/// false stops the download.
using DownloadProgress = std::function<bool(uint64_t received, uint64_t total)>;

/// Limits of a download, and who hears of it.
struct DownloadOptions {
  DownloadProgress progress;         ///< may be empty
  int64_t connect_seconds = 30;      ///< how long a connection may take to stand
  int64_t silence_seconds = 60;      ///< how long the sender may say nothing
  uint64_t bytes_most = 2ULL << 30;  ///< a longer answer is refused
};

/// Fetches a URL (https, http or file) into `target`, which must not exist, and compares its sum. Throws
/// Error that names the URL, and leaves no file, when the transfer fails, is stopped or has another sum.
void download(const std::string& url, const Checksum& expected, const std::filesystem::path& target,
              const DownloadOptions& options);

/// A file that is wanted out of an archive.
struct ArchiveMember {
  std::string name;              ///< as in the archive
  std::filesystem::path target;  ///< relative to the folder of the extraction
  uint64_t bytes = 0;            ///< exact size
};

/// Takes exactly the `members` out of an archive (any format and compression that libarchive reads) and
/// writes them under `folder`; other members are passed over. Throws Error that names the archive and the
/// member when one is missing, repeated, not a plain file or of another size, when the archive is damaged,
/// and when any member's name is absolute or has a part "..". What was written till then stays: give a
/// folder that is thrown away.
void extract_members(const std::filesystem::path& archive, const std::vector<ArchiveMember>& members,
                     const std::filesystem::path& folder);

}  // namespace strait
