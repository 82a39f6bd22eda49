#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strait/boundary/options.h"

namespace strait {

/// What the per-sample buffers of feedback take when every training sample has been seen, both endpoints of a
/// boundary in this process, which share one store.
class StoreBudget {
 public:
  /// `sample_shapes` has one entry for each of `boundaries`.
  StoreBudget(const CompressionOptions& options, std::vector<std::string> boundaries,
              const std::vector<std::vector<int64_t>>& sample_shapes, int64_t samples);

  /// 0 when no activations have such feedback.
  uint64_t bytes() const;

  /// One line for people: the sum and each boundary's part.
  std::string describe() const;

  /// Throws InputError with advice when more is needed than is free where the store lies.
  void check_fits(uint64_t free_bytes) const;

  /// Memory, or space on the disk, that is free where the options put the store.
  uint64_t free_bytes() const;

 private:
  uint64_t bytes_in(const std::string& format) const;
  StoreOptions store_of(size_t boundary) const;
  uint64_t bytes_of(size_t boundary) const;

  CompressionOptions options_;
  std::vector<std::string> boundaries_;  ///< those with such feedback
  std::vector<size_t> elements_;         ///< of a sample at each of them
  uint64_t samples_;
};

}  // namespace strait
