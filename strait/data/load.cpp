#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/base/text.h"
#include "strait/data/cifar10.h"
#include "strait/data/dataset.h"
#include "strait/data/shapes.h"
#include "strait/data/text_data.h"

namespace strait {
namespace {

constexpr uint64_t kOrderTag = 0x6f72646572;     // "order"
constexpr uint64_t kEpochKeyTag = 0x65706f6368;  // "epoch"

struct Kind {
  const char* name;
  DataSplits (*load)(const DataOptions&);
};

constexpr std::array<Kind, 4> kKinds = {
    {{"cifar10", load_cifar10}, {"shapes", load_shapes}, {"wikitext2", load_text}, {"text", load_text}}};

}  // namespace

DataSplits load_data(const DataOptions& options) {
  std::vector<std::string> names;
  for (const auto& kind : kKinds) {
    if (options.kind == kind.name) return kind.load(options);
    names.emplace_back(kind.name);
  }
  throw InputError("data.kind is \"{}\", expected one of {}{}", options.kind, list_of(names),
                   suggestion(options.kind, names));
}

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
