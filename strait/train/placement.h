#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/link_rate.h"
#include "strait/models/model.h"
#include "strait/pipeline/options.h"
#include "strait/transport/group.h"
#include "strait/transport/group_part.h"

namespace strait {

/// The name of the boundary over which the network's input crosses a cut, where it does.
inline std::string input_boundary(const std::string& cut) { return cut + ".input"; }

/// Where the stages of a network are: the ranks of a pipeline have them one after another, and round again, the
/// same in every replica. Knows which of them this process has.
class Placement {
 public:
  /// `model` is the whole network, cut after the layers `cuts`. Throws InputError for cuts that it does not
  /// have, and when the group does not have one process for each replica, or one for every stages_per_rank
  /// stages of each.
  /// With pipeline.link, what this process sends over transports goes over an emulated link.
  Placement(Model model, std::vector<std::string> cuts, const PipelineOptions& pipeline,
            std::shared_ptr<Group> group);
  Placement(const Placement&) = delete;  // stages refer to the model in place
  Placement& operator=(const Placement&) = delete;

  /// The whole network, in which only the layers of this process's stages are trained.
  Model& model() { return model_; }

  /// Likewise.
  const Model& model() const { return model_; }

  /// The layers of this process's stages.
  Model own() const;

  /// The stages of the whole network.
  const std::vector<LayerRange>& stages() const { return stages_; }

  /// The rank of each, in the pipeline.
  const std::vector<int>& ranks() const { return ranks_; }

  /// Whether the stage is in this process.
  bool is_here(size_t stage) const { return ranks_[stage] == pipeline_->rank(); }

  /// Whether this process reads inputs or targets, because it has the first or the last stage.
  bool reads_data() const { return is_here(0) || is_here(stages_.size() - 1); }

  /// The first and the last layer of a stage, as `stem..layer1.1`.
  std::string stage_name(size_t stage) const;

  /// The names of the cuts: the layers before them.
  const std::vector<std::string>& cuts() const { return cuts_; }

  /// Whether the network's input crosses every cut too, over a boundary of its own behind that of what the
  /// layers give.
  bool passes_input() const { return model_.passed_below > 0; }

  /// The shape of one sample of what the layers give at each cut.
  std::vector<std::vector<int64_t>> boundary_shapes() { return strait::boundary_shapes(model_, stages_); }

  /// All processes.
  Group& group() { return *group_; }

  /// Those of this replica.
  Group& pipeline() { return *pipeline_; }

  /// This process among all.
  RankTopology topology() const { return {group_->rank(), group_->size(), replicas_}; }

  /// The number of this process's replica.
  int replica() const { return topology().replica(); }

  /// Whether all stages are in this process.
  bool is_alone() const { return pipeline_->size() == 1; }

  /// For what crosses the boundaries. The placement must outlive it. With all stages here and an emulated link,
  /// each of the processes that the stages could have sends over a wire of its own. `device` is that of the
  /// stages here, on which payloads may stay by NCCL. Collective.
  std::unique_ptr<Transport> make_transport(c10::Device device);

  /// The whole network on the first process, with the weights of all stages as they are now; on the other
  /// ranks of its pipeline only their own stage's are right. Collective.
  const Model& collect_model();

 private:
  std::unique_ptr<Transport> make_emulated_loopback() const;

  Model model_;
  std::vector<std::string> cuts_;
  std::optional<LinkRate> link_;                           ///< emulated
  std::optional<std::chrono::milliseconds> nccl_timeout_;  ///< where NCCL carries payloads: of its waits
  std::shared_ptr<Group> group_;
  std::shared_ptr<Group> pipeline_;
  int replicas_;
  int stages_per_rank_;
  std::vector<LayerRange> stages_;
  std::vector<int> ranks_;
};

}  // namespace strait
