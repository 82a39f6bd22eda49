#include "strait/models/matrix.h"

#include "strait/base/error.h"

namespace strait {

at::Tensor embedded(const at::Tensor& weight, const at::Tensor& tokens) {
  const auto largest = tokens.max().item<int64_t>();
  if (largest < weight.size(0)) return at::embedding(weight, tokens);
  throw InputError("model.vocab: expected more than {}, a token of the data, found {}", largest,
                   weight.size(0));
}

}  // namespace strait
