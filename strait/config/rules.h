#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strait/base/rule.h"
#include "strait/boundary/options.h"
#include "strait/pipeline/options.h"

namespace strait {

/// The most characters of a folder's name.
inline constexpr size_t kFolderNameMost = 100;

/// Whether a folder's name may have the character; it begins with no . or -.
bool is_folder_character(char c);

Rule<std::vector<int>> each_at_least(int64_t low);  ///< every item of the array
Rule<std::string> folder_name();            ///< names one folder on every file system: letters, digits and ._+-
Rule<std::string> duration();               ///< see parse_seconds(); at least a millisecond
Rule<std::string> duration_or_none();       ///< the same, or 0s
Rule<std::string> bandwidth();              ///< see parse_bandwidth()
Rule<std::string> link_or_none();           ///< what parse_link_rate() takes, or nothing
Rule<std::vector<double>> each_positive();  ///< finite numbers above 0
Rule<std::string> codec_spec();             ///< what make_codec() takes
Rule<std::string> codec_or_auto();          ///< the same, or kAutoCodec
Rule<std::string> feedback();               ///< what check_feedback() takes

Rule<std::string> device_name();  ///< auto, cpu, cuda or cuda:N

Rule<std::string> any_text();  ///< nothing beyond the type

/// Nothing beyond the entries' own keys; check() has the rest.
Rule<std::vector<OwnBoundaryOptions>> own_boundaries();

/// Likewise.
Rule<std::vector<NetworkOptions>> networks();

/// Nothing beyond the type; check() has the rest.
Rule<std::vector<std::string>> codecs();

/// No empty name and none twice.
Rule<std::vector<std::string>> distinct_names();

}  // namespace strait
