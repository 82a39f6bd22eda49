#include "strait/data/batch_parts.h"

#include <algorithm>

namespace strait {

BatchPart part_of_batch(int64_t rows, int part, int parts) {
  const int64_t each = rows / parts;
  const int64_t larger = rows % parts;  // so many parts have a row more
  return {part * each + std::min<int64_t>(part, larger), each + (part < larger ? 1 : 0)};
}

namespace {

/// Of each place of a pass, the part of its batch; `parts` in a batch that is left out.
std::vector<int> parts_of_places(int64_t samples, int64_t batch_size, int parts) {
  std::vector<int> part_of_place(static_cast<size_t>(samples), parts);
  for (int64_t begin = 0; begin < samples; begin += batch_size) {
    const int64_t rows = std::min(batch_size, samples - begin);
    if (rows < parts) break;
    for (int part = 0; part < parts; ++part) {
      const BatchPart place = part_of_batch(rows, part, parts);
      std::fill_n(part_of_place.begin() + begin + place.first_row, place.rows, part);
    }
  }
  return part_of_place;
}

}  // namespace

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

std::vector<int64_t> order_with_parts_of(const std::vector<int64_t>& first, const std::vector<int64_t>& order,
                                         int64_t batch_size, int parts) {
  const auto part_of_place = parts_of_places(static_cast<int64_t>(order.size()), batch_size, parts);
  std::vector<int> part_of_sample(order.size());
  for (size_t place = 0; place < first.size(); ++place) {
    part_of_sample[static_cast<size_t>(first[place])] = part_of_place[place];
  }
  std::vector<std::vector<int64_t>> samples_of(static_cast<size_t>(parts) + 1);
  for (const int64_t id : order) {
    samples_of[static_cast<size_t>(part_of_sample[static_cast<size_t>(id)])].push_back(id);
  }
  std::vector<size_t> taken(samples_of.size());
  std::vector<int64_t> all;
  all.reserve(order.size());
  for (const int part : part_of_place) {
    const auto number = static_cast<size_t>(part);
    all.push_back(samples_of[number][taken[number]++]);
  }
  return all;
}

int64_t trained_samples(int64_t samples, int64_t batch_size, int parts) {
  const int64_t rest = samples % batch_size;
  return rest < parts ? samples - rest : samples;
}

}  // namespace strait
