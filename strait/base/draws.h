#pragma once

#include <cstddef>
#include <cstdint>

namespace strait {

/// What the random draws of a forward pass are keyed with, beside what says which draw it is. A draw keyed so
/// does not depend on how the network is cut, on the micro-batches or on the processes.
struct DrawKey {
  uint64_t seed = 0;     ///< the run's
  uint64_t step = 0;     ///< optimizer steps taken before
  size_t first_row = 0;  ///< row of the batch at which the input's first sample stands
};

namespace detail {
inline thread_local DrawKey draw_key;
}

/// The key of the forward pass that this thread is in.
inline const DrawKey& current_draws() { return detail::draw_key; }

/// Sets the key for its lifetime.
class DrawScope {
 public:
  explicit DrawScope(const DrawKey& key) : before_(detail::draw_key) { detail::draw_key = key; }
  ~DrawScope() { detail::draw_key = before_; }
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

 private:
  DrawKey before_;
};

}  // namespace strait
