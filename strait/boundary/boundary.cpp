#include "strait/boundary/boundary.h"

namespace strait {
namespace {

/// Makes the local ends of one direction.
void make_ends(const ChannelSpec& at_sender, const ChannelSpec& at_receiver, bool sends, bool receives,
               std::optional<Sender>& sender, std::optional<Receiver>& receiver) {
  const Link& link = *at_sender.link;
  LinkEnds ends;
  if (sends && receives) {
    ends = link.make_ends();
  } else if (sends) {
    ends.encoder = link.make_encoder();
  } else {
    ends.decoder = link.make_decoder();
  }
  if (sends) sender.emplace(at_sender, std::move(ends.encoder));
  if (receives) receiver.emplace(at_receiver, std::move(ends.decoder));
}

void visit_end(auto& end, const std::string& prefix, StateVisitor& visitor) {
  PrefixedVisitor prefixed(prefix, visitor);
  if (end) end->visit_state(prefixed);
}

}  // namespace

Boundary::Boundary(std::string boundary_name)
    : Boundary(std::move(boundary_name), make_link(kUncompressed), make_link(kUncompressed)) {}

Boundary::Boundary(std::string boundary_name, std::shared_ptr<const Link> activations,
                   std::shared_ptr<const Link> gradients)
    : name(std::move(boundary_name)), links{std::move(activations), std::move(gradients)} {
  if (!links.activations || !links.gradients) {
    throw InputError("boundary {}: expected a link for activations and one for gradients", name);
  }
}

BoundaryLinks links_of(const CompressionOptions& options, std::string_view boundary) {
  const auto [activations, gradients] = options.at(boundary);
  const auto link_of = [&](const LinkOptions& link) {
    return make_link(link.codec, link.feedback, options.store);
  };
  return {link_of(activations),
          options.reuse_indices ? make_reuse_link(make_codec(gradients.codec)) : link_of(gradients)};
}

BoundaryEndpoints::BoundaryEndpoints(std::string boundary_name, uint16_t index, const BoundaryLinks& links,
                                     int diagnostics, Local local)
    : name(std::move(boundary_name)) {
  const auto memory = [&] {
    return links.gradients->reuses_indices() ? std::make_shared<IndexMemory>() : nullptr;
  };
  const auto upstream = memory();
  const auto downstream = memory();
  const auto spec = [&](Direction direction, const auto& link, const auto& indices) {
    return ChannelSpec{name, index, direction, link, diagnostics, indices};
  };
  make_ends(spec(Direction::activation, links.activations, upstream),
            spec(Direction::activation, links.activations, downstream), local.upstream, local.downstream,
            activation_sender, activation_receiver);
  make_ends(spec(Direction::gradient, links.gradients, downstream),
            spec(Direction::gradient, links.gradients, upstream), local.downstream, local.upstream,
            gradient_sender, gradient_receiver);
}

void BoundaryEndpoints::prefetch(std::span<const int64_t> ids) {
  if (activation_sender) activation_sender->prefetch(ids);
  if (activation_receiver) activation_receiver->prefetch(ids);
}

void BoundaryEndpoints::visit_state(StateVisitor& visitor) {
  visit_end(activation_sender, name + ".activations.sender", visitor);
  visit_end(activation_receiver, name + ".activations.receiver", visitor);
  visit_end(gradient_sender, name + ".gradients.sender", visitor);
  visit_end(gradient_receiver, name + ".gradients.receiver", visitor);
}

void BoundaryEndpoints::visit_evaluation_state(StateVisitor& visitor) {
  const auto visit = [&](auto& end, std::string_view place) {
    if (end && end->link().slots() == Link::Slots::rows) {
      visit_end(end, fmt::format("{}.activations.{}", name, place), visitor);
    }
  };
  visit(activation_sender, "sender");
  visit(activation_receiver, "receiver");
}

HeldState::HeldState(std::vector<BoundaryEndpoints>& boundaries) : boundaries_(boundaries) {
  struct Holder : StateVisitor {
    explicit Holder(std::vector<at::Tensor>& tensors) : held(tensors) {}
    void tensor(std::string_view /*name*/, at::Tensor& value) override {
      held.push_back(value);
      if (value.defined()) value = value.clone();
    }
    std::vector<at::Tensor>& held;
  } holder(tensors_);
  for (BoundaryEndpoints& boundary : boundaries_) boundary.visit_evaluation_state(holder);
}

void HeldState::put_back() {
  struct Returner : StateVisitor {
    explicit Returner(std::vector<at::Tensor>& tensors) : held(tensors) {}
    void tensor(std::string_view /*name*/, at::Tensor& value) override { value = held.at(next++); }
    std::vector<at::Tensor>& held;
    size_t next = 0;
  } returner(tensors_);
  for (BoundaryEndpoints& boundary : boundaries_) boundary.visit_evaluation_state(returner);
}

std::string peer_state_name(std::string_view state_name) {
  std::string peer(state_name);
  for (const auto& [end, other] : {std::pair{".sender.", ".receiver."}, {".receiver.", ".sender."}}) {
    const size_t place = peer.find(end);
    if (place != std::string::npos) return peer.replace(place, std::string_view(end).size(), other);
  }
  return peer;
}

}  // namespace strait
