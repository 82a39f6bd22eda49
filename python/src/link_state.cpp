#include "python/src/link_state.h"

#include <set>

#include "strait/base/error.h"

namespace strait::python {
namespace {

class Copier : public StateVisitor {
 public:
  void tensor(std::string_view name, at::Tensor& value) override {
    if (value.defined()) state_.emplace(name, value.clone());
  }
  LinkState take() { return std::move(state_); }

 private:
  LinkState state_;
};

class StateLoader : public StateVisitor {
 public:
  explicit StateLoader(const LinkState& state) : state_(state) {}

  void tensor(std::string_view name, at::Tensor& value) override {
    const auto found = state_.find(std::string(name));
    if (found == state_.end()) return;
    value = found->second.detach().to(at::kCPU).contiguous().clone();
    loaded_.insert(found->first);
  }
  void check_all_loaded() const {
    for (const auto& [name, tensor] : state_) {
      if (!loaded_.contains(name))
        throw InputError("state: tensor \"{}\" belongs to no link of this process", name);
    }
  }

 private:
  const LinkState& state_;
  std::set<std::string> loaded_;
};

}  // namespace

LinkState copy_state(const VisitLinks& visit) {
  Copier copier;
  visit(copier);
  return copier.take();
}

void load_state(const VisitLinks& visit, const LinkState& state) {
  StateLoader loader(state);
  visit(loader);
  loader.check_all_loaded();
}

}  // namespace strait::python
