#include <algorithm>
#include <numeric>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/kinds.h"
#include "strait/base/random.h"
#include "strait/data/cifar10.h"
#include "strait/data/kinds.h"
#include "strait/data/shapes.h"
#include "strait/data/text_data.h"

namespace strait {
namespace {

constexpr uint64_t kOrderTag = 0x6f72646572;     // "order"
constexpr uint64_t kEpochKeyTag = 0x65706f6368;  // "epoch"

SampleForm form_of_images(int64_t classes) { return {{kImageChannels, kImageSide, kImageSide}, classes}; }

SampleForm form_of_cifar10(const DataOptions& /*options*/) { return form_of_images(kCifarClasses); }

SampleForm form_of_shapes(const DataOptions& /*options*/) { return form_of_images(std::ssize(kShapeNames)); }

SampleForm form_of_text(const DataOptions& options) { return {{options.block}, 0}; }

/// What kinds of text have in common.
DataKind text_kind(const char* name) {
  return {.name = name,
          .task = "language modeling",
          .is_text = true,
          .batch_size = 8,
          .form = form_of_text,
          .load = load_text};
}

}  // namespace

const std::vector<DataKind>& data_kinds() {
  static const std::vector<DataKind> kKinds = {
      {.name = "cifar10", .task = "classification", .form = form_of_cifar10, .load = load_cifar10},
      {.name = "shapes",
       .task = "classification",
       .is_in_files = false,
       .form = form_of_shapes,
       .load = load_shapes},
      text_kind("wikitext2"),
      text_kind("text")};
  return kKinds;
}

const DataKind& data_kind(std::string_view name) { return find_kind(data_kinds(), name, "data.kind"); }

DataSplits load_data(const DataOptions& options) { return data_kind(options.kind).load(options); }

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
