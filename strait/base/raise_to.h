#pragma once

#include <atomic>

namespace strait {

/// Makes `largest` at least `value`, whatever other threads do with it.
template <class Number>
void raise_to(std::atomic<Number>& largest, Number value) {
  Number before = largest;
  while (before < value && !largest.compare_exchange_weak(before, value)) {
  }
}

}  // namespace strait
