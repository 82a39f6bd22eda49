#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace strait {

/// The cores that this thread may run on (its CPU affinity), ascending. Never empty. Throws Error when the
/// kernel does not say, as on a machine of more than 1024 cores.
std::vector<int> available_cores();

/// Part `index` of `count`: the parts hold every core once, and their sizes differ by one at most.
/// `count` must not be 0 and `index` must be less. Which cores share a cache or a floating-point unit is
/// not looked at.
std::vector<int> share_of(std::span<const int> cores, size_t index, size_t count);

}  // namespace strait
