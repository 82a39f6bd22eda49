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
  const auto spec = [&](Direction direction, std::shared_ptr<const Link> link) {
    return ChannelSpec{
        name, index, direction, std::move(link), options.evaluation == "frozen", options.diagnostics};
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
  const auto visit = [&](auto& end, std::string_view place) {
    Prefixed prefixed(fmt::format("{}.{}", name, place), visitor);
    if (end) end->visit_state(prefixed);
  };
  visit(activation_sender, "activations.sender");
  visit(activation_receiver, "activations.receiver");
  visit(gradient_sender, "gradients.sender");
  visit(gradient_receiver, "gradients.receiver");
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
