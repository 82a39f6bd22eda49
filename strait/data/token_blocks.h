#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strait/data/dataset.h"

namespace strait {

/// Blocks of consecutive tokens. A batch has them as `inputs` [B, block] int64, and `targets` is the same
/// tensor: the loss shifts it by one. Nothing is drawn, so the augmentation key changes nothing.
class TokenBlocks final : public Dataset {
 public:
  /// `tokens` has a whole number of blocks.
  TokenBlocks(std::vector<int32_t> tokens, int64_t block);

  /// How many blocks there are.
  int64_t size() const override { return static_cast<int64_t>(tokens_.size()) / block_; }
  Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const override;

 private:
  std::vector<int32_t> tokens_;
  int64_t block_;
};

}  // namespace strait
