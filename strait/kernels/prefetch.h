#pragma once

#include <cstddef>

namespace strait::kernels {

/// Elements between the place that is read or written and the one that is asked for.
constexpr size_t kAhead = 1024;

/// Asks memory for the line of 64 bytes around `element`, which need not exist. It goes to the second level of
/// the cache: on its way to the first it would hold one of the few places for lines that are read now.
inline void prefetch(const float* element) {
  constexpr int kRead = 0;
  constexpr int kSecondLevel = 2;
  __builtin_prefetch(element, kRead, kSecondLevel);
}

}  // namespace strait::kernels
