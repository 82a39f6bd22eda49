#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strait/boundary/channel_endpoints.h"
#include "strait/boundary/options.h"

namespace strait {

/// What crosses a cut goes through these.
struct BoundaryLinks {
  std::shared_ptr<const Link> activations;  ///< forward
  std::shared_ptr<const Link> gradients;    ///< backward
};

/// A boundary as its user describes it: a name, which messages and files use, and the links of its two
/// directions.
struct Boundary {
  /// Nothing is compressed.
  explicit Boundary(std::string name);

  /// Throws InputError where one of the links is missing, and for one with Link::needs_previous().
  Boundary(std::string name, std::shared_ptr<const Link> activations, std::shared_ptr<const Link> gradients);

  std::string name;     ///< unique among the boundaries of a pipeline
  BoundaryLinks links;  ///< of its two directions
  int diagnostics = 0;  ///< the messages of every `diagnostics`-th step are measured; 0 measures none
};

/// The links of a boundary. Throws InputError when a codec or feedback name is wrong, and as Boundary().
BoundaryLinks links_of(const CompressionOptions& options, std::string_view boundary);

/// The links of integers from 0 to below `limit`, which cross forward alone; see make_integer_link().
BoundaryLinks integer_links(int64_t limit);

/// One cut of the network as one process sees it: of its two channels, the endpoints that are local. With both
/// stages in the process these are all four.
struct BoundaryEndpoints {
  /// Which side of the cut is in this process.
  struct Local {
    bool upstream = true;    ///< the stage before the cut: sends activations, receives gradients
    bool downstream = true;  ///< the stage after it
  };

  /// The messages of every `diagnostics`-th step are measured; 0 measures none.
  BoundaryEndpoints(std::string name, uint16_t index, const BoundaryLinks& links, int diagnostics, Local local);

  /// Says which samples the batch after the next one has.
  void prefetch(std::span<const int64_t> ids);

  /// The state of the local endpoints, as `NAME.activations.sender.STATE` and likewise `gradients`, `receiver`.
  void visit_state(StateVisitor& visitor);

  /// The part of it that evaluation reads: of activations, what belongs to places in the batch.
  void visit_evaluation_state(StateVisitor& visitor);

  /// The channel of that direction.
  ChannelEndpoints& channel(Direction direction) {
    return direction == Direction::activation ? activations : gradients;
  }

  std::string name;              ///< the layer after which the network is cut
  ChannelEndpoints activations;  ///< from upstream to downstream
  ChannelEndpoints gradients;    ///< from downstream to upstream

 private:
  /// Where gradients reuse indices, those of each side; null elsewhere.
  struct Indices {
    explicit Indices(const Link& gradients);
    std::shared_ptr<IndexMemory> upstream;
    std::shared_ptr<IndexMemory> downstream;
  };
  BoundaryEndpoints(std::string name, uint16_t index, const BoundaryLinks& links, int diagnostics, Local local,
                    const Indices& indices);
};

/// What evaluation reads of the state of boundaries, as it was when this was made; meanwhile they work with a
/// copy of it.
class HeldState {
 public:
  /// The boundaries must outlive it.
  explicit HeldState(std::vector<BoundaryEndpoints>& boundaries);

  /// Gives the state back, bit for bit; no other thread may use the boundaries.
  void put_back();

 private:
  std::vector<BoundaryEndpoints>& boundaries_;
  std::vector<at::Tensor> tensors_;  ///< in the order of the visit
};

/// The name under which the other endpoint of a channel keeps its state of the same kind; the name itself for
/// what is no endpoint's state.
std::string peer_state_name(std::string_view state_name);

}  // namespace strait
