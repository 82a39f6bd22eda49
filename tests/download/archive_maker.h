#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace strait::test {

struct TarMember {
  std::string name;
  std::string content;
  std::string link = {};  ///< not empty: a symbolic link to this
};

inline void make_tar_gz(const std::filesystem::path& path, const std::vector<TarMember>& members) {
  struct archive* archive = archive_write_new();
  archive_write_add_filter_gzip(archive);
  archive_write_set_format_ustar(archive);
  if (archive_write_open_filename(archive, path.c_str()) != ARCHIVE_OK) throw std::runtime_error("no archive");
  for (const auto& member : members) {
    archive_entry* entry = archive_entry_new();
    archive_entry_set_pathname(entry, member.name.c_str());
    archive_entry_set_perm(entry, 0644);
    archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
    archive_entry_set_filetype(entry, member.link.empty() ? AE_IFREG : AE_IFLNK);
    if (!member.link.empty()) archive_entry_set_symlink(entry, member.link.c_str());
    archive_write_header(archive, entry);
    archive_write_data(archive, member.content.data(), member.content.size());
    archive_entry_free(entry);
  }
  archive_write_close(archive);
  archive_write_free(archive);
}

}  // namespace strait::test
