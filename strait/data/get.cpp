#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "strait/base/error.h"
#include "strait/data/registry.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

/// A folder beside the final files, so that a rename moves them; removed with all that is in it.
class WorkFolder {
 public:
  explicit WorkFolder(const fs::path& root) {
    std::string name = (root / ".strait-get-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw Error("{}: cannot make a folder in it: {}", root.string(), std::strerror(errno));
    }
    path_ = name;
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

bool is_official(const OfficialFile& file, const fs::path& root) {
  std::error_code error;
  const fs::path path = root / file.path;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) == file.bytes &&
         file_checksum(path, file.sum.kind) == file.sum;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw Error("{}: cannot be made: {}", folder.string(), error.message());
}

std::string address(const OfficialSource& source, const std::string& base_url) {
  if (base_url.empty()) return source.base + source.file;
  return base_url + (base_url.ends_with('/') ? "" : "/") + source.file;
}

/// Fetches one source into the work folder, where its files then lie under their final relative paths.
void fetch(const OfficialData& data, const OfficialSource& source, const fs::path& work,
           const GetOptions& options) {
  const std::string url = address(source, options.base_url);
  if (!source.path.empty()) {
    make_folder((work / source.path).parent_path());
    download(url, source.sum, work / source.path, options.download);
    return;
  }
  const fs::path archive = work / source.file;
  download(url, source.sum, archive, options.download);
  std::vector<ArchiveMember> members;
  for (const auto& file : data.files) members.push_back({file.path, file.path, file.bytes});
  extract_members(archive, members, work);
}

void move_into_place(const OfficialFile& file, const fs::path& work, const fs::path& root) {
  const fs::path target = root / file.path;
  make_folder(target.parent_path());
  std::error_code error;
  fs::rename(work / file.path, target, error);
  if (error) throw Error("{}: cannot be put in place: {}", target.string(), error.message());
}

}  // namespace

GetResult get_data(const OfficialData& data, const fs::path& root, const GetOptions& options) {
  if (data.downloads.empty()) throw InputError("{} cannot be fetched: {}", data.name, data.hint);
  GetResult result;
  for (const auto& file : data.files) result.files.push_back(root / file.path);
  result.present = std::ranges::all_of(data.files, [&](const auto& file) { return is_official(file, root); });
  if (result.present) return result;
  make_folder(root);
  const WorkFolder work(root);
  for (const auto& source : data.downloads) fetch(data, source, work.path(), options);
  for (const auto& file : data.files) {
    if (is_official(file, work.path())) continue;
    throw Error("{}: what was fetched is not the official file: {} sum {}, expected {}", file.path,
                to_string(file.sum.kind), file_checksum(work.path() / file.path, file.sum.kind).hex,
                file.sum.hex);
  }
  for (const auto& file : data.files) move_into_place(file, work.path(), root);
  return result;
}

}  // namespace strait
