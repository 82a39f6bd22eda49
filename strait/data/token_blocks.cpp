#include "strait/data/token_blocks.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "strait/base/error.h"

namespace strait {

TokenBlocks::TokenBlocks(std::vector<int32_t> tokens, int64_t block)
    : tokens_(std::move(tokens)), block_(block) {
  STRAIT_CHECK(block > 0 && static_cast<int64_t>(tokens_.size()) % block == 0, "{} tokens are not blocks of {}",
               tokens_.size(), block);
}

Batch TokenBlocks::batch(std::span<const int64_t> ids, std::optional<uint64_t> /*augmentation_key*/) const {
  const auto inputs = at::empty({static_cast<int64_t>(ids.size()), block_}, at::kLong);
  auto* out = inputs.data_ptr<int64_t>();
  for (const int64_t id : ids) {
    STRAIT_CHECK(id >= 0 && id < size(), "there is no block {} of {}", id, size());
    out = std::copy_n(tokens_.begin() + id * block_, block_, out);
  }
  return {inputs, inputs, {ids.begin(), ids.end()}};
}

}  // namespace strait
