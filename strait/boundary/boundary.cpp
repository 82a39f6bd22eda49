#include "strait/boundary/boundary.h"

#include "strait/links/integers.h"

namespace strait {
namespace {

void expect_for_boundary(std::string_view boundary, const BoundaryLinks& links) {
  for (const auto& link : {links.activations, links.gradients})
    expect_no_previous(fmt::format("boundary {}", boundary), *link);
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
  expect_for_boundary(name, links);
}

BoundaryLinks links_of(const CompressionOptions& options, std::string_view boundary) {
  const auto [activations, gradients] = options.at(boundary);
  const auto link_of = [&](const LinkOptions& link) {
    return make_link(link.codec, link.feedback, options.store);
  };
  BoundaryLinks links{link_of(activations), options.reuse_indices ? make_reuse_link(make_codec(gradients.codec))
                                                                  : link_of(gradients)};
  expect_for_boundary(boundary, links);
  return links;
}

BoundaryLinks integer_links(int64_t limit) {
  const auto link = make_integer_link(limit);
  return {link, link};
}

BoundaryEndpoints::Indices::Indices(const Link& gradients) {
  if (!gradients.reuses_indices()) return;
  upstream = std::make_shared<IndexMemory>();
  downstream = std::make_shared<IndexMemory>();
}

BoundaryEndpoints::BoundaryEndpoints(std::string boundary_name, uint16_t index, const BoundaryLinks& links,
                                     int diagnostics, Local local)
    : BoundaryEndpoints(std::move(boundary_name), index, links, diagnostics, local, Indices(*links.gradients)) {
}

BoundaryEndpoints::BoundaryEndpoints(std::string boundary_name, uint16_t index, const BoundaryLinks& links,
                                     int diagnostics, Local local, const Indices& indices)
    : name(std::move(boundary_name)),
      activations({name, index, Direction::activation, links.activations, diagnostics, indices.upstream},
                  {name, index, Direction::activation, links.activations, diagnostics, indices.downstream},
                  {.sender = local.upstream, .receiver = local.downstream}),
      gradients({name, index, Direction::gradient, links.gradients, diagnostics, indices.downstream},
                {name, index, Direction::gradient, links.gradients, diagnostics, indices.upstream},
                {.sender = local.downstream, .receiver = local.upstream}) {}

void BoundaryEndpoints::prefetch(std::span<const int64_t> ids) {
  activations.prefetch(ids);
  gradients.prefetch(ids);
}

void BoundaryEndpoints::visit_state(StateVisitor& visitor) {
  PrefixedVisitor of_activations(name + ".activations", visitor);
  PrefixedVisitor of_gradients(name + ".gradients", visitor);
  activations.visit_state(of_activations);
  gradients.visit_state(of_gradients);
}

void BoundaryEndpoints::visit_evaluation_state(StateVisitor& visitor) {
  if (activations.link->slots() != Slots::rows) return;
  PrefixedVisitor prefixed(name + ".activations", visitor);
  activations.visit_state(prefixed);
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
