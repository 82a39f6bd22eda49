#pragma once

#include <filesystem>
#include <string>

namespace strait::test {

/// A folder that lives as long as the object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

/// The whole file.
std::string read_file(const std::filesystem::path& path);

void write_file(const std::filesystem::path& path, const std::string& content);

}  // namespace strait::test
