#pragma once

#include <cstddef>
#include <string>

namespace strait::test {

/// JSON of arrays within arrays, so many levels deep.
inline std::string nested(size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

}  // namespace strait::test
