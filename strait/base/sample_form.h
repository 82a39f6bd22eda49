#pragma once

#include <cstdint>
#include <vector>

namespace strait {

/// What a model must know of the samples that it is for.
struct SampleForm {
  std::vector<int64_t> shape;  ///< of one input, without the batch dimension; empty: not known yet
  int64_t classes = 0;         ///< what a prediction chooses among; 0: tokens, as many as there are
};

}  // namespace strait
