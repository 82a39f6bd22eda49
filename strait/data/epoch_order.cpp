#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/data/dataset.h"

namespace strait {
namespace {

constexpr uint64_t kOrderTag = 0x6f72646572;     // "order"
constexpr uint64_t kEpochKeyTag = 0x65706f6368;  // "epoch"

}  // namespace

std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t size) {
  STRAIT_CHECK(size >= 0, "a data set cannot have {} samples", size);
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  CounterRandom random(make_key(kOrderTag, seed, epoch));
  for (size_t left = order.size(); left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

uint64_t augmentation_key(uint64_t seed, int64_t epoch) { return make_key(kEpochKeyTag, seed, epoch); }

}  // namespace strait
