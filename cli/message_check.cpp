#include "cli/message_check.h"

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait::cli {

std::string type_name(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    default:
      return at::toString(tensor.scalar_type());
  }
}

void check_message(const std::string& name, const at::Tensor& x, const std::string& path) {
  if (x.scalar_type() != at::kFloat) {
    throw InputError("{}: tensor {}: expected float32, found {}", path, in_quotes(name), type_name(x));
  }
  if (x.dim() == 0) {
    throw InputError("{}: tensor {}: expected at least one dimension, found a scalar", path, in_quotes(name));
  }
}

}  // namespace strait::cli
