#pragma once

#include <cstdint>
#include <string_view>

#include "strait/base/error.h"

namespace strait {

/// The number of samples that the limit `key` leaves of `most`; 0 leaves all.
inline int64_t limited(std::string_view key, int64_t limit, int64_t most) {
  if (limit < 0 || limit > most) {
    throw InputError("{} is {}, expected 0 (all) to {}", key, limit, most);
  }
  return limit == 0 ? most : limit;
}

}  // namespace strait
