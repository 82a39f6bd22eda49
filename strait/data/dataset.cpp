#include "strait/data/dataset.h"

#include "strait/base/error.h"

namespace strait {

void expect_classes(const Dataset& data) {
  const int64_t first = 0;
  if (data.size() > 0 && data.classes({&first, 1}).empty()) {
    throw InputError("feedback with slots=class expects a data set whose samples have classes");
  }
}

}  // namespace strait
