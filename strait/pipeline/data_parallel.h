#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strait/boundary/peer_channels.h"
#include "strait/transport/group_part.h"

namespace strait {

/// What ties the replicas of a pipeline together: after the backward pass the processes that have the same
/// stages add up their gradients. Each stage's gradients are one message, encoded once and sent to every other
/// replica; every replica adds what the messages decode to, its own too, in the order of replicas. So all get
/// the same bits, whatever the codec. Collective over all replicas.
class DataParallel {
 public:
  /// A stage of this process.
  struct Stage {
    int number = 0;                      ///< among the pipeline's stages, from 0
    std::string name;                    ///< state is kept under it
    std::vector<at::Tensor> parameters;  ///< in an order that all replicas share
  };

  /// The name of the exchange, beside those of boundaries.
  static constexpr const char* kName = "replicas";

  /// One pipeline, without others.
  DataParallel();

  /// `stages` of the pipeline's `stage_count`. The group has all processes.
  DataParallel(Group& group, const RankTopology& place, int stage_count, std::vector<Stage> stages,
               const std::shared_ptr<const Link>& link, uint64_t seed);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Whether sum_gradients() of such a step needs the gradients that the same batches have at the weights that
  /// the step before began with. The same in all processes.
  bool needs_previous(uint64_t step, MessageMode mode) const;

  /// Replaces the gradients of the stages' parameters by their sums over all replicas. `previous` are those at
  /// the weights before, of all stages' parameters in order, where needs_previous(). Throws NumericError for
  /// gradients that are not finite, and what the transport throws.
  void sum_gradients(uint64_t step, MessageMode mode, std::span<const at::Tensor> previous = {});

  /// Lets no replica pass before the first one has come here: those that do not evaluate keep pace with it so,
  /// and have a sign of its life.
  void wait_for_first();

  /// What this process sent and decoded since the last call, each copy of a message counted; nothing without
  /// others.
  std::optional<Traffic> take_traffic();

  /// The state of the links, as `replicas.STAGE.sender.STATE` and, of replica K's messages, `receiver-K`.
  void visit_state(StateVisitor& visitor);

  /// Checksums of the parameters, by stage; they must be the same in all replicas. Nothing without others.
  std::map<std::string, uint64_t> weight_checksums() const;

 private:
  class Replicas;
  std::unique_ptr<Replicas> replicas_;  ///< none without others
};

}  // namespace strait
