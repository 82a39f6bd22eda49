#pragma once

#include <map>
#include <string>

namespace strait::report {

/// A configuration's values, as texts, by their full keys.
using ConfigValues = std::map<std::string, std::string>;

/// What was trained, without what the run is called and its seed; empty where a text is no configuration, which
/// the page shows as it is.
ConfigValues config_values(const std::string& config);

/// The same without the keys that config_hash() leaves out too, because they change nothing that is computed.
/// Keys that another version of the program does not have count as others.
ConfigValues deciding_values(const std::string& config);

}  // namespace strait::report
