#pragma once

#include <string>
#include <vector>

#include "strait/doctor/diagnosis.h"

namespace strait {

/// Something that is wrong, or could be better.
struct Finding {
  bool stops_the_run = false;  ///< `strait train` would not begin, or not come to its end
  std::string text;            ///< one line: what it is, and what helps

  bool operator==(const Finding&) const = default;
};

/// What there is to say about what was found, the gravest first; nothing where all is well. It looks at nothing
/// but the diagnosis.
std::vector<Finding> findings_of(const Diagnosis& diagnosis);

}  // namespace strait
