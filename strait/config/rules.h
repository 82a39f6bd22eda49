#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strait/base/rule.h"

namespace strait {

Rule<std::vector<int>> each_at_least(int64_t low);  ///< every item of the array
Rule<std::string> folder_name();  ///< names one folder on every file system: letters, digits and ._+-
Rule<std::string> duration();     ///< see parse_seconds(); at least a millisecond
Rule<std::string> codec_spec();   ///< what make_codec() takes
Rule<std::string> feedback();     ///< one of link_names()

/// No empty name and none twice.
Rule<std::vector<std::string>> distinct_names();

}  // namespace strait
