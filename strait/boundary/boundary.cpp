#include "strait/boundary/boundary.h"

namespace strait {
namespace {

std::shared_ptr<const Link> link_of(const LinkOptions& options, const StoreOptions& store) {
  return make_link(options.feedback, make_codec(options.codec), store);
}

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

Boundary::Boundary(std::string boundary_name, uint16_t index, const CompressionOptions& options, Local local)
    : name(std::move(boundary_name)) {
  const auto spec = [&](Direction direction, std::shared_ptr<const Link> link) {
    return ChannelSpec{name, index, direction, std::move(link), options.diagnostics};
  };
  const ChannelSpec activation = spec(Direction::activation, link_of(options.activations, options.store));
  const ChannelSpec gradient =
      spec(Direction::gradient, options.reuse_indices ? make_reuse_link(make_codec(options.gradients.codec))
                                                      : link_of(options.gradients, options.store));
  const auto on_side = [](ChannelSpec end, const std::shared_ptr<IndexMemory>& kept) {
    end.kept = kept;
    return end;
  };
  const auto above = options.reuse_indices ? std::make_shared<IndexMemory>() : nullptr;
  const auto below = options.reuse_indices ? std::make_shared<IndexMemory>() : nullptr;
  make_ends(on_side(activation, above), on_side(activation, below), local.upstream, local.downstream,
            activation_sender, activation_receiver);
  make_ends(on_side(gradient, below), on_side(gradient, above), local.downstream, local.upstream,
            gradient_sender, gradient_receiver);
}

void Boundary::expect(std::span<const int64_t> ids) {
  if (activation_sender) activation_sender->expect(ids);
  if (activation_receiver) activation_receiver->expect(ids);
}

void Boundary::visit_state(StateVisitor& visitor) {
  visit_end(activation_sender, name + ".activations.sender", visitor);
  visit_end(activation_receiver, name + ".activations.receiver", visitor);
  visit_end(gradient_sender, name + ".gradients.sender", visitor);
  visit_end(gradient_receiver, name + ".gradients.receiver", visitor);
}

void Boundary::visit_evaluation_state(StateVisitor& visitor) {
  const auto visit = [&](auto& end, std::string_view place) {
    if (end && end->link().slots() == Link::Slots::rows) {
      visit_end(end, fmt::format("{}.activations.{}", name, place), visitor);
    }
  };
  visit(activation_sender, "sender");
  visit(activation_receiver, "receiver");
}

HeldState::HeldState(std::vector<Boundary>& boundaries) : boundaries_(boundaries) {
  struct Holder : StateVisitor {
    explicit Holder(std::vector<at::Tensor>& tensors) : held(tensors) {}
    void tensor(std::string_view /*name*/, at::Tensor& value) override {
      held.push_back(value);
      if (value.defined()) value = value.clone();
    }
    std::vector<at::Tensor>& held;
  } holder(tensors_);
  for (Boundary& boundary : boundaries_) boundary.visit_evaluation_state(holder);
}

void HeldState::put_back() {
  struct Returner : StateVisitor {
    explicit Returner(std::vector<at::Tensor>& tensors) : held(tensors) {}
    void tensor(std::string_view /*name*/, at::Tensor& value) override { value = held.at(next++); }
    std::vector<at::Tensor>& held;
    size_t next = 0;
  } returner(tensors_);
  for (Boundary& boundary : boundaries_) boundary.visit_evaluation_state(returner);
}

std::string twin_of(std::string_view state_name) {
  std::string twin(state_name);
  for (const auto& [end, other] : {std::pair{".sender.", ".receiver."}, {".receiver.", ".sender."}}) {
    const size_t place = twin.find(end);
    if (place != std::string::npos) return twin.replace(place, std::string_view(end).size(), other);
  }
  return twin;
}

}  // namespace strait
