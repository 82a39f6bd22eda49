#include "strait/data/dataset.h"

#include <ATen/core/ivalue.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr int64_t kLooked = 64;  // samples without classes, of which the digest is

uint64_t digest_of(const Dataset& data) {
  std::vector<int64_t> ids(static_cast<size_t>(data.size()));
  std::iota(ids.begin(), ids.end(), int64_t{0});
  const auto classes = data.classes(ids);
  if (!classes.empty() || ids.empty()) return XXH3_64bits(classes.data(), classes.size() * sizeof(int64_t));
  const int64_t count = std::min(kLooked, data.size());
  ids.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i)
    ids[static_cast<size_t>(i)] = i * (data.size() - 1) / std::max<int64_t>(count - 1, 1);
  const at::Tensor targets = data.batch(ids, std::nullopt).targets.contiguous();
  return XXH3_64bits(targets.data_ptr(), targets.nbytes());
}

}  // namespace

std::string fingerprint(const DataSplits& data) {
  return fmt::format("{} training and {} test samples, {:016x} and {:016x}", data.train->size(),
                     data.test->size(), digest_of(*data.train), digest_of(*data.test));
}

void expect_classes(const Dataset& data) {
  const int64_t first = 0;
  if (data.size() > 0 && data.classes({&first, 1}).empty()) {
    throw InputError("feedback with slots=class expects a data set whose samples have classes");
  }
}

}  // namespace strait
