#include "strait/boundary/boundary.h"

namespace strait {
namespace {

std::shared_ptr<const Link> link_of(const LinkOptions& options) {
  return make_link(options.feedback, make_codec(options.codec));
}

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

}  // namespace strait
