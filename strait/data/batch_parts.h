#pragma once

#include <cstdint>
#include <vector>

namespace strait {

/// Consecutive rows of a batch.
struct BatchPart {
  int64_t first_row = 0;  ///< in the batch
  int64_t rows = 0;       ///< how many
};

/// One of `parts` parts into which a batch is cut. Their sizes differ by one at most, and the larger ones come
/// first: so a shorter batch has no part that is larger than the same part of a longer one.
BatchPart part_of_batch(int64_t rows, int part, int parts);

/// Of every batch of a pass the samples of one part, in the order of the pass. A Loader cuts them into the
/// parts of the batches again: its batch size is part_of_batch(batch_size, part, parts).rows. A last batch with
/// fewer samples than parts is left out.
std::vector<int64_t> part_of_order(const std::vector<int64_t>& order, int64_t batch_size, int part, int parts);

/// The samples of a pass in another order in which each is in the same part of its batch as in `first`: those
/// of a part follow each other as in `order`. Both are permutations of the ids from 0. So a part has the same
/// samples in every pass, in other batches; those of a last batch that is left out are so in every pass.
std::vector<int64_t> order_with_parts_of(const std::vector<int64_t>& first, const std::vector<int64_t>& order,
                                         int64_t batch_size, int parts);

/// Samples of a pass of which every part gets some: a last batch with fewer samples than parts is left out.
int64_t trained_samples(int64_t samples, int64_t batch_size, int parts);

}  // namespace strait
