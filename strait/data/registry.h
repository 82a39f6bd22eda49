#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strait/download/digest.h"
#include "strait/download/download.h"

namespace strait {

/// What a file's content can be checked for beside its sum.
enum class FileContent : uint8_t {
  cifar10,  ///< 10,000 records with labels 0 to 9
  text,     ///< UTF-8 and not empty
  opaque    ///< nothing: only the official file is accepted
};

/// A file of a data set, as its authors publish it.
struct OfficialFile {
  std::string path;                           ///< relative to data.root
  uint64_t bytes = 0;                         ///< exact size
  Checksum sum;                               ///< of its content
  FileContent content = FileContent::opaque;  ///< what another file must be to serve
};

/// Something to fetch: an archive that holds files of the data set, or one file itself.
struct OfficialSource {
  std::string base;  ///< address up to the last slash, with it
  std::string file;  ///< rest of the address
  Checksum sum;      ///< of what the address gives
  std::string path;  ///< one file: its path under data.root; empty for an archive
};

/// A data set or a model's files, and where they come from.
struct OfficialData {
  std::string name;                       ///< in commands
  std::string title;                      ///< for people
  std::string source;                     ///< authors, paper, page
  std::string terms;                      ///< licence, as the source states it
  std::vector<OfficialFile> files;        ///< that training reads
  std::vector<OfficialSource> downloads;  ///< empty: there is no address with a published sum
  std::string hint;                       ///< where to find the files when there is none
};

/// The table of known names: cifar10, wikitext2, gpt2-tokenizer, gpt2.
const std::vector<OfficialData>& official_data();

/// The entry of that name (`strait data info`). Throws InputError that lists the names.
const OfficialData& data_info(std::string_view name);

/// What check_data() finds of a file.
enum class CheckLevel : uint8_t {
  ok,       ///< the official file
  differs,  ///< another one that training takes
  error     ///< one that cannot be used, or none
};

/// What check_data() says of one file.
struct CheckLine {
  CheckLevel level = CheckLevel::ok;  ///< how bad it is
  std::string message;                ///< begins with the file's path
};

/// What check_data() says of a data set.
struct CheckReport {
  std::vector<CheckLine> lines;  ///< one per file, in the order of the table

  /// The worst line, the first of several: an error before a file that differs. Nothing when all are official.
  std::optional<CheckLine> first_wrong() const;
};

/// Looks at each file under `root`: presence, size, content, sum (`strait data check`). A file with another
/// sum differs where its content is valid, otherwise it is an error. Throws nothing for a bad file.
CheckReport check_data(const OfficialData& data, const std::filesystem::path& root);

/// From where, and how, get_data() fetches.
struct GetOptions {
  std::string base_url;      ///< takes the place of every source's `base`; for a mirror, and for tests
  DownloadOptions download;  ///< limits and progress
};

/// What get_data() did.
struct GetResult {
  bool present = false;                      ///< the official files were there; nothing was fetched
  std::vector<std::filesystem::path> files;  ///< the files that are now there
};

/// Brings the files under `root` (`strait data get`): fetches into a temporary folder in `root`, compares
/// sums, unpacks, compares the files' sums and only then renames each into its place, over one that was
/// there. Whatever fails, the temporary folder is removed. Throws InputError for data without an address
/// and Error for everything that goes wrong on the way.
GetResult get_data(const OfficialData& data, const std::filesystem::path& root, const GetOptions& options);

}  // namespace strait
