#include <algorithm>
#include <fstream>

#include "strait/base/error.h"
#include "strait/base/utf8.h"
#include "strait/data/cifar10.h"
#include "strait/data/registry.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr size_t kCompareBlockBytes = size_t{1} << 20;

void check_text(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> block(kCompareBlockBytes);
  Utf8 text;
  uint64_t offset = 0;
  while (in.good()) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    for (std::streamsize i = 0; i < in.gcount(); ++i, ++offset) {
      if (!text.accept(static_cast<uint8_t>(block[static_cast<size_t>(i)]))) {
        throw InputError("{}: is not UTF-8 at offset {}", path.string(), offset);
      }
    }
  }
  if (offset == 0) throw InputError("{}: is empty", path.string());
  if (!text.complete()) throw InputError("{}: ends inside a UTF-8 character", path.string());
}

/// Throws InputError unless the program could use the file as it is.
void check_content(const OfficialFile& file, const fs::path& path, const Checksum& found) {
  if (file.content == FileContent::cifar10) {
    ImageRecords ignored;
    append_cifar10_file(path, kCifarFileRecords, ignored);
  } else if (file.content == FileContent::text) {
    check_text(path);
  } else if (found != file.sum) {
    throw InputError("{}: has {} bytes and the {} sum {}, expected {} bytes and {}", path.string(),
                     fs::file_size(path), to_string(found.kind), found.hex, file.bytes, file.sum.hex);
  }
}

CheckLine check_file(const OfficialFile& file, const fs::path& root) {
  const fs::path path = root / file.path;
  try {
    if (!fs::is_regular_file(path)) {
      throw InputError("{}: no such file, expected {} bytes", path.string(), file.bytes);
    }
    const Checksum found = file_checksum(path, file.sum.kind);
    check_content(file, path, found);
    if (found == file.sum) return {CheckLevel::ok, fmt::format("{}: the official file", path.string())};
    return {CheckLevel::differs, fmt::format("{}: differs from the official file: {} sum {}, expected {}",
                                             path.string(), to_string(found.kind), found.hex, file.sum.hex)};
  } catch (const InputError& error) {
    return {CheckLevel::error, error.what()};
  } catch (const fs::filesystem_error& error) {
    return {CheckLevel::error, fmt::format("{}: cannot be read: {}", path.string(), error.code().message())};
  }
}

}  // namespace

std::optional<CheckLine> CheckReport::first_wrong() const {
  for (const auto level : {CheckLevel::error, CheckLevel::differs}) {
    const auto found = std::ranges::find(lines, level, &CheckLine::level);
    if (found != lines.end()) return *found;
  }
  return std::nullopt;
}

CheckReport check_data(const OfficialData& data, const fs::path& root) {
  CheckReport report;
  for (const auto& file : data.files) report.lines.push_back(check_file(file, root));
  return report;
}

}  // namespace strait
