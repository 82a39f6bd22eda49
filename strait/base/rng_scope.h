#pragma once

#include <cstddef>
#include <cstdint>

namespace strait {

/// What the random draws of a forward pass are keyed with, beside what says which draw it is. A draw keyed so
/// does not depend on how the network is cut, on the micro-batches or on the processes.
struct RngKey {
  uint64_t seed = 0;     ///< the run's
  uint64_t step = 0;     ///< optimizer steps taken before
  size_t first_row = 0;  ///< row of the batch at which the input's first sample stands
};

namespace detail {
/// Where RngScope keeps the thread's key.
inline thread_local RngKey rng_key;
}  // namespace detail

/// The key of the forward pass that this thread is in.
inline const RngKey& current_rng_key() { return detail::rng_key; }

/// Sets the key for its lifetime.
class RngScope {
 public:
  /// Makes `key` the thread's key; the one before comes back at the end of the scope.
  explicit RngScope(const RngKey& key) : before_(detail::rng_key) { detail::rng_key = key; }
  ~RngScope() { detail::rng_key = before_; }
  RngScope(const RngScope&) = delete;
  RngScope& operator=(const RngScope&) = delete;

 private:
  RngKey before_;
};

}  // namespace strait
