#include "strait/data/batch_parts.h"

#include <algorithm>

namespace strait {

BatchPart part_of_batch(int64_t rows, int part, int parts) {
  const int64_t each = rows / parts;
  const int64_t larger = rows % parts;  // so many parts have a row more
  return {part * each + std::min<int64_t>(part, larger), each + (part < larger ? 1 : 0)};
}

std::vector<int64_t> part_of_order(const std::vector<int64_t>& order, int64_t batch_size, int part, int parts) {
  std::vector<int64_t> own;
  const auto samples = static_cast<int64_t>(order.size());
  for (int64_t begin = 0; begin < samples; begin += batch_size) {
    const int64_t rows = std::min(batch_size, samples - begin);
    if (rows < parts) break;
    const BatchPart mine = part_of_batch(rows, part, parts);
    const auto first = order.begin() + begin + mine.first_row;
    own.insert(own.end(), first, first + mine.rows);
  }
  return own;
}

}  // namespace strait
