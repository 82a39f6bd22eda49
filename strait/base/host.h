#pragma once

#include <string>

namespace strait {

/// What this machine calls itself.
std::string host_name();

/// The version of strait and the commit that it was built from.
std::string code_version();

}  // namespace strait
