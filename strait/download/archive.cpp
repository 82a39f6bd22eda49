#include <archive.h>
#include <archive_entry.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "strait/base/error.h"
#include "strait/download/download.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr size_t kArchiveBlockBytes = size_t{1} << 18;
constexpr int64_t kMembersMost = 10'000;

struct CloseArchive {
  void operator()(struct archive* archive) const { archive_read_free(archive); }
};

/// Reads an archive from its beginning to its end.
class ArchiveReader {
 public:
  explicit ArchiveReader(const fs::path& path) : name_(path.string()), archive_(archive_read_new()) {
    archive_read_support_filter_all(archive_.get());
    archive_read_support_format_all(archive_.get());
    check(archive_read_open_filename(archive_.get(), path.c_str(), kArchiveBlockBytes));
  }

  /// The next member's header, or nullptr after the last.
  archive_entry* next() {
    archive_entry* entry = nullptr;
    const int result = archive_read_next_header(archive_.get(), &entry);
    if (result == ARCHIVE_EOF) return nullptr;
    check(result);
    return entry;
  }

  void copy(const ArchiveMember& member, const fs::path& target) {
    std::ofstream out(target, std::ios::binary);
    std::vector<char> block(kArchiveBlockBytes);
    uint64_t written = 0;
    while (written <= member.bytes) {
      const la_ssize_t got = archive_read_data(archive_.get(), block.data(), block.size());
      if (got < 0) check(static_cast<int>(got));
      if (got <= 0) break;
      out.write(block.data(), got);
      written += static_cast<uint64_t>(got);
    }
    if (written != member.bytes) {
      throw Error("{}: member {} has {} bytes, expected {}", name_, member.name,
                  written > member.bytes ? "more" : fmt::format("{}", written), member.bytes);
    }
    if (!out.flush()) throw Error("{}: cannot be written", target.string());
  }

  const std::string& name() const { return name_; }

 private:
  /// A warning of libarchive (a name in an odd encoding, a clock that is off) does not touch the content.
  void check(int result) {
    if (result == ARCHIVE_OK || result == ARCHIVE_WARN) return;
    const char* reason = archive_error_string(archive_.get());
    throw Error("{}: archive is damaged: {}", name_, reason == nullptr ? "no reason given" : reason);
  }

  std::string name_;
  std::unique_ptr<struct archive, CloseArchive> archive_;
};

std::string safe_name(archive_entry* entry, const std::string& archive) {
  const char* raw = archive_entry_pathname(entry);
  const fs::path path = raw == nullptr ? "" : raw;
  if (path.empty() || path.is_absolute() || std::ranges::find(path, fs::path("..")) != path.end()) {
    throw Error("{}: member \"{}\" would leave the folder", archive, path.string());
  }
  return path.lexically_normal().string();
}

}  // namespace

void extract_members(const fs::path& archive, const std::vector<ArchiveMember>& members,
                     const fs::path& folder) {
  ArchiveReader reader(archive);
  std::vector<bool> found(members.size(), false);
  int64_t seen = 0;
  while (archive_entry* entry = reader.next()) {
    if (++seen > kMembersMost) throw Error("{}: has more than {} members", reader.name(), kMembersMost);
    const std::string name = safe_name(entry, reader.name());
    const auto member = std::ranges::find(members, name, &ArchiveMember::name);
    if (member == members.end()) continue;
    const auto index = static_cast<size_t>(member - members.begin());
    if (found[index]) throw Error("{}: has the member {} twice", reader.name(), name);
    found[index] = true;
    if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr) {
      throw Error("{}: member {} is not a plain file", reader.name(), name);
    }
    const fs::path target = folder / member->target;
    std::error_code ignored;  // without its folder the file is the one to hear of
    fs::create_directories(target.parent_path(), ignored);
    reader.copy(*member, target);
  }
  for (size_t i = 0; i < members.size(); ++i) {
    if (!found[i]) throw Error("{}: has no member {}", reader.name(), members[i].name);
  }
}

}  // namespace strait
