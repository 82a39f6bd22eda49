#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strait/boundary/options.h"
#include "strait/wire/frame.h"

namespace strait {

/// What the per-sample buffers of feedback take at most when every training sample has been seen: of each
/// direction of a boundary with such feedback one store, which both endpoints share where they are in this
/// process.
class StoreBudget {
 public:
  /// `sample_shapes` has one entry for each of `boundaries`.
  StoreBudget(const CompressionOptions& options, const std::vector<std::string>& boundaries,
              const std::vector<std::vector<int64_t>>& sample_shapes, int64_t samples);

  /// 0 without such feedback.
  uint64_t bytes() const;

  /// One line for people: the sum and each boundary's part.
  std::string describe() const;

  /// Throws InputError with advice when more is needed than is free where the store lies. `others` are bytes
  /// that other processes' stores will take there.
  void check_fits(uint64_t free_bytes, uint64_t others = 0) const;

  /// Memory, or space on the disk, that is free where the options put the store.
  uint64_t free_bytes() const;

 private:
  struct Store {
    std::string boundary;
    Direction direction = Direction::activation;
    size_t elements = 0;  ///< of a sample
  };

  uint64_t bytes_in(const std::string& format) const;
  StoreOptions options_of(const Store& store) const;
  uint64_t bytes_of(const Store& store) const;

  CompressionOptions options_;
  std::vector<Store> stores_;
  uint64_t samples_;
};

}  // namespace strait
