#include "python/src/local_boundary.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/tensor.h>

#include "python/src/tensors.h"
#include "strait/base/text.h"
#include "strait/links/sample_store.h"

namespace strait::python {

namespace {

bool keeps_state(const BoundaryEndpoints& endpoints) {
  return endpoints.activations.link->slots() != Slots::none || endpoints.gradients.link->slots() != Slots::none;
}

bool has_slots(const BoundaryEndpoints& endpoints, Slots slots) {
  return endpoints.activations.link->slots() == slots || endpoints.gradients.link->slots() == slots;
}

BoundaryEndpoints endpoints_of(const BoundaryForm& form) {
  return {form.name, form.index, links_with(form.name, form.scheme, form.reuse_indices), 0, {}};
}

/// The state under names without the boundary's own, which stands before them with a dot.
size_t prefix_of(const BoundaryEndpoints& endpoints) { return endpoints.name.size() + 1; }

VisitState state_of(BoundaryEndpoints& endpoints) {
  return [&endpoints](StateVisitor& visitor) { endpoints.visit_state(visitor); };
}

constexpr const char* kSampleShape = "sample_shape";

std::vector<int64_t> without_rows(at::IntArrayRef shape) { return shape.slice(1).vec(); }

}  // namespace

BoundaryScheme scheme_with(const std::string& activations, const std::string& gradients,
                           const Feedback& feedback) {
  if (const auto* each = std::get_if<std::pair<std::string, std::string>>(&feedback)) {
    return {{activations, each->first}, {gradients, each->second}};
  }
  const auto& both = std::get<std::string>(feedback);
  const auto of = [&](const std::string& codec) {
    return codec == kUncompressed ? std::string(kNoFeedback) : both;
  };
  BoundaryScheme scheme{{activations, of(activations)}, {gradients, of(gradients)}};
  check_feedback(both);
  const auto back = make_link(gradients, scheme.gradients.feedback);
  if (!back->serves_gradients()) scheme.gradients.feedback = kNoFeedback;
  return scheme;
}

BoundaryLinks links_with(const std::string& boundary, const BoundaryScheme& scheme, bool reuse_indices) {
  if (reuse_indices) check_index_reuse("boundary " + boundary, scheme);
  CompressionOptions options;
  options.activations = scheme.activations;
  options.gradients = scheme.gradients;
  options.reuse_indices = reuse_indices;
  BoundaryLinks links = links_of(options, boundary);
  if (!links.gradients->serves_gradients()) {
    throw InputError("boundary {}: feedback \"{}\" keeps activations and serves no gradients", boundary,
                     scheme.gradients.feedback);
  }
  return links;
}

LocalBoundary::LocalBoundary(BoundaryForm form)
    : form_(std::move(form)), endpoints_(endpoints_of(form_)), under_way_(std::make_shared<MicroBatches>()) {}

void LocalBoundary::check_batch(const at::Tensor& x) const {
  const auto rows = static_cast<uint64_t>(x.size(0));
  const uint64_t first = batch_ ? batch_->first_row : 0;
  if (form_.slots && first + rows > static_cast<uint64_t>(*form_.slots)) {
    throw InputError("boundary {}: expected a batch of at most slots = {} rows, found {}", form_.name,
                     *form_.slots, first + rows);
  }
  if (has_slots(endpoints_, Slots::samples)) {
    const std::vector<int64_t> ids = batch_ ? batch_->ids : std::vector<int64_t>();
    if (ids.size() != rows) {
      throw InputError(
          "boundary {}: its feedback keeps samples: expected the ids of {} of them, found {}; "
          "strait.batch(model, ids=...) gives them",
          form_.name, rows, ids.size());
    }
    expect_distinct("boundary " + form_.name, ids);
  }
  if (has_slots(endpoints_, Slots::classes)) {
    const size_t classes = batch_ ? batch_->classes.size() : 0;
    if (classes != rows) {
      throw InputError(
          "boundary {}: its feedback keeps classes: expected those of {} samples, found {}; "
          "strait.batch(model, classes=...) gives them",
          form_.name, rows, classes);
    }
  }
  if (!sample_shape_.empty() && sample_shape_ != without_rows(x.sizes())) {
    throw InputError("boundary {}: its state is of samples of shape {}, found {}", form_.name,
                     shape_text(sample_shape_), shape_text(without_rows(x.sizes())));
  }
}

std::pair<at::Tensor, std::shared_ptr<Crossing>> LocalBoundary::forward(const at::Tensor& x, bool training) {
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  const at::Tensor message = as_message(x, "boundary " + form_.name);
  if (message.dim() == 0) throw InputError("boundary {}: expected [rows, ...], found a scalar", form_.name);
  if (training) check_batch(message);
  const MessageMode mode{.training = training,
                         .compressed = compressed_ && (training || form_.evaluation != EvaluationMode::off),
                         .evaluation = form_.evaluation};
  MessageContext place;
  place.seed = form_.seed;
  place.step = batch_ && batch_->step ? *batch_->step : step_;
  place.first_row = batch_ ? batch_->first_row : 0;
  const bool knows_samples = batch_ && training;
  auto crossing =
      std::make_shared<Crossing>(under_way_, place, mode, knows_samples ? batch_->ids : std::vector<int64_t>(),
                                 knows_samples ? batch_->classes : std::vector<int64_t>());
  at::Tensor received = endpoints_.activations.cross(message, crossing->context, mode, FrameCheck::trust);
  received = narrowed(received.to(x.device()), x.scalar_type(), "boundary " + form_.name);
  if (!training) return {received, nullptr};
  traffic_.forward += endpoints_.activations.take_traffic();
  if (keeps_state(endpoints_)) sample_shape_ = without_rows(message.sizes());
  if (!batch_) step_ += 1;
  batch_trained_ = true;
  return {received, crossing};
}

at::Tensor LocalBoundary::backward(Crossing& crossing, const at::Tensor& gradient) {
  const at::NoGradGuard no_grad;
  const std::scoped_lock lock(mutex_);
  if (crossing.is_finished()) {
    throw Error(
        "boundary {}: the gradient of this forward pass has crossed already; a second backward pass "
        "through it would be a message that no pipeline sends",
        form_.name);
  }
  if (form_.reuse_indices && !crossing.is_among(under_way_)) {
    throw Error(
        "boundary {}: it was numbered or given a state since this forward pass, so that the indices at which "
        "its gradient was to be sent are gone",
        form_.name);
  }
  const at::Tensor message = as_message(gradient, "boundary " + form_.name);
  const at::Tensor received =
      endpoints_.gradients.cross(message, crossing.context, crossing.mode, FrameCheck::trust);
  crossing.finish();
  traffic_.backward += endpoints_.gradients.take_traffic();
  return narrowed(received.to(gradient.device()), gradient.scalar_type(),
                  "boundary " + form_.name + ", gradients");
}

void LocalBoundary::compress(bool on) {
  const std::scoped_lock lock(mutex_);
  compressed_ = on;
}

void LocalBoundary::set_step(uint64_t step) {
  const std::scoped_lock lock(mutex_);
  step_ = step;
}

void LocalBoundary::begin_batch(BatchPlace place, const std::vector<int64_t>& next_ids) {
  const std::scoped_lock lock(mutex_);
  if (batch_) throw Error("boundary {}: it is in a batch already", form_.name);
  batch_ = std::move(place);
  batch_trained_ = false;
  if (!next_ids.empty() && compressed_) endpoints_.prefetch(next_ids);
}

void LocalBoundary::end_batch() {
  const std::scoped_lock lock(mutex_);
  if (!batch_) return;
  if (batch_trained_) step_ = batch_->step.value_or(step_) + 1;
  batch_.reset();
}

void LocalBoundary::set_place(uint16_t index, const std::string& name) {
  BoundaryForm moved = form_;
  moved.index = index;
  moved.name = name;
  LocalBoundary other(moved);
  other.load_state(state());
  const std::scoped_lock lock(mutex_);
  form_ = std::move(moved);
  replace(std::move(other.endpoints_));
}

/// The indices of forward passes whose gradients are to come go with the former endpoints.
void LocalBoundary::replace(BoundaryEndpoints endpoints) {
  endpoints_ = std::move(endpoints);
  under_way_ = std::make_shared<MicroBatches>();
}

StateTensors LocalBoundary::state() {
  const std::scoped_lock lock(mutex_);
  StateTensors all = copy_state(state_of(endpoints_), prefix_of(endpoints_));
  if (!all.empty()) all.emplace(kSampleShape, at::tensor(sample_shape_, at::kLong));
  return all;
}

void LocalBoundary::load_state(StateTensors state) {
  std::vector<int64_t> sample_shape;
  if (const auto found = state.extract(kSampleShape); !found.empty()) {
    const at::Tensor shape = found.mapped().to(at::kCPU).contiguous();
    if (shape.scalar_type() != at::kLong || shape.dim() != 1) {
      throw InputError("the state of boundary {}: tensor \"{}\" is no shape", form_.name, kSampleShape);
    }
    sample_shape.assign(shape.data_ptr<int64_t>(), shape.data_ptr<int64_t>() + shape.numel());
  }
  BoundaryEndpoints loaded = endpoints_of(form_);
  put_state(std::move(state), "boundary " + form_.name, state_of(loaded), prefix_of(loaded));
  const std::scoped_lock lock(mutex_);
  replace(std::move(loaded));
  sample_shape_ = std::move(sample_shape);
}

CrossedTraffic LocalBoundary::traffic() {
  const std::scoped_lock lock(mutex_);
  return traffic_;
}

void LocalBoundary::set_traffic(const CrossedTraffic& traffic) {
  const std::scoped_lock lock(mutex_);
  traffic_ = traffic;
}

}  // namespace strait::python
