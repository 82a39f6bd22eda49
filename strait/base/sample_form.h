#pragma once

#include <cstdint>
#include <vector>

namespace strait {

/// What a model must know of the samples that it is for.
struct SampleForm {
  std::vector<int64_t> shape;  ///< of one input, without the batch dimension; empty: not known yet
  int64_t outputs = 0;         ///< numbers that a network makes of one: so many classes, or those to be
                               ///< predicted; 0: as many as there are tokens
};

}  // namespace strait
