#pragma once

#include <cstdint>

namespace strait {

/// Whether one of the last `steps` of so many is a multiple of `every`; never of 0.
constexpr bool passes_multiple(uint64_t every, uint64_t step, uint64_t steps) {
  return every > 0 && step / every != (step - steps) / every;
}

}  // namespace strait
