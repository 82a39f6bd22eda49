#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "strait/boundary/channel.h"
#include "strait/boundary/options.h"
#include "strait/run/metrics.h"
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
               const LinkOptions& link, uint64_t seed);
  ~DataParallel();
  DataParallel(const DataParallel&) = delete;
  DataParallel& operator=(const DataParallel&) = delete;

  /// Replaces the gradients of the stages' parameters by their sums over all replicas. Gives whether any
  /// replica's mode says that it stops. Throws NumericError for gradients that are not finite, and what the
  /// transport throws.
  bool sum_gradients(uint64_t step, MessageMode mode);

  /// What the first replica says, in each; that it says so is a sign of life to the others.
  bool first_says(bool stops);

  /// What this process sent and decoded since the last call, each copy of a message counted; nothing without
  /// others.
  std::vector<BoundaryTraffic> take_traffic();

  /// The state of the links, as `replicas.STAGE.sender.STATE` and, of replica K's messages, `receiver-K`.
  void visit_state(StateVisitor& visitor);

  /// Checksums of the parameters, by stage; they must be the same in all replicas. Nothing without others.
  std::map<std::string, uint64_t> weight_checksums() const;

 private:
  class Exchange;
  std::unique_ptr<Exchange> exchange_;  ///< none without others
};

}  // namespace strait
