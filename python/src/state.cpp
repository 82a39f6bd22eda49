#include "python/src/state.h"

#include <ATen/core/ivalue.h>

#include "strait/base/error.h"

namespace strait::python {
namespace {

/// Calls a function for each tensor.
class Visitor : public StateVisitor {
 public:
  using Take = std::function<void(const std::string& name, at::Tensor& value)>;
  Visitor(size_t prefix, Take take) : prefix_(prefix), take_(std::move(take)) {}
  void tensor(std::string_view name, at::Tensor& value) override {
    take_(std::string(name.substr(prefix_)), value);
  }

 private:
  size_t prefix_;
  Take take_;
};

bool can_be_state(const at::Tensor& value) {
  return value.defined() && value.layout() == at::kStrided && value.dim() >= 1 &&
         (value.scalar_type() == at::kFloat || value.scalar_type() == at::kLong ||
          value.scalar_type() == at::kByte);
}

}  // namespace

StateTensors copy_state(const VisitState& visit, size_t prefix) {
  StateTensors all;
  Visitor visitor(prefix, [&](const std::string& name, at::Tensor& value) {
    // On a device the copy waits for what still writes the state, on whichever stream.
    if (value.defined()) all.emplace(name, value.to(at::kCPU, value.scalar_type(), false, /*copy=*/true));
  });
  visit(visitor);
  return all;
}

void put_state(StateTensors state, const std::string& what, const VisitState& visit, size_t prefix) {
  Visitor visitor(prefix, [&](const std::string& name, at::Tensor& value) {
    const auto node = state.extract(name);
    if (node.empty()) {
      value = at::Tensor();
      return;
    }
    if (!can_be_state(node.mapped())) {
      throw InputError("the state of {}: tensor \"{}\" is not what a link keeps", what, name);
    }
    value = node.mapped().detach().to(at::kCPU).contiguous().clone();
  });
  visit(visitor);
  if (!state.empty()) {
    throw InputError("the state of {}: its links have no tensor \"{}\"", what, state.begin()->first);
  }
}

}  // namespace strait::python
