#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "python/src/crossing.h"
#include "python/src/state.h"
#include "strait/boundary/boundary.h"

namespace strait::python {

/// What a boundary is made of; with the state of its links all that a pickle of it needs.
struct BoundaryForm {
  BoundaryScheme scheme;       ///< codecs and feedback of both directions
  bool reuse_indices = false;  ///< gradients are sent at the indices of their activations
  EvaluationMode evaluation = EvaluationMode::plain;  ///< off, plain or frozen
  std::string name;                                   ///< for messages
  uint16_t index = 0;            ///< keys random draws, as the place of a pipeline's boundary
  uint64_t seed = 0;             ///< likewise
  std::optional<int64_t> slots;  ///< rows of a full batch; a batch may not have more
};

/// A feedback spec for both directions, or one for each: forward, backward.
using Feedback = std::variant<std::string, std::pair<std::string, std::string>>;

/// The scheme of a boundary. Of one spec for both directions, a direction that does not compress has none, nor
/// have gradients with a scheme that serves activations alone. Throws InputError as make_link().
BoundaryScheme scheme_with(const std::string& activations, const std::string& gradients,
                           const Feedback& feedback);

/// The links of a boundary with that scheme. `reuse_indices`: gradients are sent at the indices of their
/// activations. Throws InputError that names the boundary where they cannot be.
BoundaryLinks links_with(const std::string& boundary, const BoundaryScheme& scheme, bool reuse_indices);

/// A batch as its user describes it.
struct BatchPlace {
  std::optional<uint64_t> step;  ///< optimizer steps taken before it; nothing: as counted
  uint64_t first_row = 0;        ///< row of the whole batch at which it begins
  std::vector<int64_t> ids;      ///< of the samples, where they are known
  std::vector<int64_t> classes;  ///< likewise
};

/// What has crossed in both directions.
struct CrossedTraffic {
  Traffic forward;   ///< activations
  Traffic backward;  ///< gradients
};

/// A boundary between two parts of a network in one process: both endpoints of both directions, with the bits
/// of a Pipeline's boundary. Threads may share it; messages have the order of the calls.
class LocalBoundary {
 public:
  /// Throws InputError for links that cannot be.
  explicit LocalBoundary(BoundaryForm form);

  /// What it was made of.
  const BoundaryForm& form() const { return form_; }

  /// What the downstream stage receives of an activation [rows, ...], in x's type, and, in training, what
  /// backward() is to be given. Evaluation changes no state and counts nothing. Throws InputError for a batch
  /// that does not fit, NumericError.
  std::pair<at::Tensor, std::shared_ptr<Crossing>> forward(const at::Tensor& x, bool training);

  /// What the upstream stage receives of the gradient. Throws Error for a crossing that was used before.
  at::Tensor backward(Crossing& crossing, const at::Tensor& gradient);

  /// Whether messages are compressed from now on.
  void compress(bool on);
  bool compresses() const { return compressed_; }

  /// The next message is that of this number of steps.
  void set_step(uint64_t step);
  uint64_t step() const { return step_; }

  /// Until end_batch() every message is of one batch; then the step is the next one. `next_ids` are the samples
  /// of the batch after it.
  void begin_batch(BatchPlace place, const std::vector<int64_t>& next_ids);
  void end_batch();

  /// The number and the name of a boundary among others; the state goes along.
  void set_place(uint16_t index, const std::string& name);

  /// Copies of the tensors that the links carry from message to message, by name.
  StateTensors state();

  /// Replaces all of it. Throws InputError that names the tensor, and leaves the state as it was then.
  void load_state(StateTensors state);

  /// What has crossed in training so far.
  CrossedTraffic traffic();
  void set_traffic(const CrossedTraffic& traffic);

 private:
  void check_batch(const at::Tensor& x) const;
  void replace(BoundaryEndpoints endpoints);

  BoundaryForm form_;
  BoundaryEndpoints endpoints_;
  std::vector<int64_t> sample_shape_;  ///< that the state has; empty before there is any
  std::optional<BatchPlace> batch_;
  bool batch_trained_ = false;  ///< whether a message of training has crossed in it
  uint64_t step_ = 0;
  bool compressed_ = true;
  CrossedTraffic traffic_;
  std::shared_ptr<MicroBatches> under_way_;
  std::mutex mutex_;
};

}  // namespace strait::python
