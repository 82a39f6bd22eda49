#include "strait/boundary/boundary.h"

namespace strait {
namespace {

std::shared_ptr<const Link> link_of(const LinkOptions& options) {
  return make_link(options.feedback, make_codec(options.codec));
}

/// Puts a prefix before every name.
class Prefixed : public StateVisitor {
 public:
  Prefixed(std::string prefix, StateVisitor& visitor) : prefix_(std::move(prefix)), visitor_(visitor) {}
  void tensor(std::string_view name, at::Tensor& value) override {
    visitor_.tensor(fmt::format("{}.{}", prefix_, name), value);
  }

 private:
  std::string prefix_;
  StateVisitor& visitor_;
};

}  // namespace

Boundary::Boundary(std::string boundary_name, uint16_t index, const CompressionOptions& options, Local local)
    : name(std::move(boundary_name)) {
  const bool frozen = options.evaluation == "frozen";
  const ChannelSpec activation{name, index, Direction::activation, link_of(options.activations), frozen};
  const ChannelSpec gradient{name, index, Direction::gradient, link_of(options.gradients), frozen};
  if (local.upstream) {
    activation_sender.emplace(activation);
    gradient_receiver.emplace(gradient);
  }
  if (local.downstream) {
    activation_receiver.emplace(activation);
    gradient_sender.emplace(gradient);
  }
}

void Boundary::visit_state(StateVisitor& visitor) {
  const auto visit = [&](auto& end, std::string_view place) {
    Prefixed prefixed(fmt::format("{}.{}", name, place), visitor);
    if (end) end->visit_state(prefixed);
  };
  visit(activation_sender, "activations.sender");
  visit(activation_receiver, "activations.receiver");
  visit(gradient_sender, "gradients.sender");
  visit(gradient_receiver, "gradients.receiver");
}

}  // namespace strait
