#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/clock.h"
#include "strait/boundary/codec_trial.h"
#include "strait/boundary/layer_cosines.h"
#include "strait/boundary/options.h"
#include "strait/checkpoint/training_state.h"
#include "strait/pipeline/executor.h"
#include "strait/run/metrics.h"
#include "strait/train/placement.h"
#include "strait/train/side_pass.h"
#include "strait/transport/group.h"

namespace strait {

/// A direction of a boundary whose sender is in this process, and codecs tried on one of its messages.
struct TriedChannel {
  std::string boundary;                         ///< its name
  Direction direction = Direction::activation;  ///< of the messages
  int64_t rows = 0;                             ///< of the message

  /// Of each codec of the ladder, in its order; where the direction is not chosen, of its own codec alone.
  std::vector<CodecTrial> trials;
};

/// What one process knows when codecs are to be chosen; all of them together know everything.
struct ChoiceFacts {
  std::vector<TriedChannel> channels;  ///< in the order of boundaries
  TimesOfStages stages;                ///< of the first replica and the epoch, since its stages have warmed up
  double since_last = 0;               ///< seconds since the last choice, or since training began here
};

/// Makes the next choice of what all processes know: its codecs, with the time and the steps that are expected
/// of them. Collective: the same on every process.
using ChooseCodecs = std::function<CodecChoice(const ChoiceFacts& mine, Group& group)>;

/// The links of boundaries whose codec is kAutoCodec. A training begins with the strongest codec of the ladder
/// whose errors of the first messages are small, so that no link is waited for long before anything is known of
/// it, or with one of the least errors where links are known to be no limit; the first choice follows after a
/// few steps, and the next ones when training has made twice as many steps, with the last step of each epoch,
/// or more often. A choice holds from the next step on. Where it could gain much, the messages of the eight
/// batches before a choice say how far codecs turn gradients, beside those before earlier choices; the first
/// eight steps of a training do not.
class AutomaticCodecs {
 public:
  /// `asked` is what the configuration says. The executor and the placement must outlive this.
  AutomaticCodecs(Executor& executor, Placement& placement, CompressionOptions asked, ChooseCodecs choose,
                  bool links_are_no_limit = false);

  /// Brings the links to where the state was. At the beginning of a training its choice is the strongest codec,
  /// until start().
  void begin(TrainingState& state);

  /// Whether start() is due before the next batch.
  bool is_starting() const { return starting_; }

  /// Replaces the choice by the one to begin training with, of the messages of some rows of the first batch.
  /// Collective.
  void start(TrainingState& state, const StepInput& batch);

  /// Before a batch, with which so many steps of the optimizer end and after which the state has one batch
  /// more. The training has so many epochs of so many batches.
  void before_batch(const TrainingState& state, int64_t steps, int64_t batches, int64_t epochs);

  /// Whether choose() is due behind the batch that before_batch() was called for.
  bool is_due() const { return due_; }

  /// Adds the next choice to the state, whose times are up to date, behind a batch. Collective.
  void choose(TrainingState& state);

  /// Behind the first batch: the times of the epoch until now do not count, since stages were warming up.
  void warmed_up(const TrainingState& state) {
    warm_up_ = state.stages;
    is_warming_up_ = false;
  }

  /// Whether that is to be said.
  bool is_warming_up() const { return is_warming_up_; }

  /// Puts into the state what was seen of codecs in its last batch and before.
  void take_in(TrainingState& state);

  /// Before an epoch: drops the choices that hold for none of its steps.
  static void begin_epoch(TrainingState& state);

  /// The choices that held in the epoch that is done.
  static std::vector<CodecChoice> of_epoch(const TrainingState& state);

 private:
  using LadderRungs = std::array<size_t, 2>;                ///< by Direction, a place in the ladder
  using LadderErrors = std::array<std::vector<double>, 2>;  ///< likewise, for each codec of the ladder

  /// Of one boundary, as they came.
  struct WatchedMessages {
    std::vector<KeptMessage> activations;
    std::vector<KeptMessage> gradients;
  };

  static bool is_provisional(const TrainingState& state) {
    return state.choices.empty() || !state.choices.back().is_tried();
  }
  std::vector<std::shared_ptr<const Link>> links_to_try(const std::string& boundary,
                                                        const ChannelEndpoints& channel,
                                                        Direction direction) const;
  bool is_chosen(const std::string& boundary, Direction direction) const;
  CodecChoice provisional(const LadderRungs& rungs, uint64_t step) const;
  bool is_choice_near(const TrainingState& state, int64_t steps, int64_t left, bool is_last_epoch) const;
  bool is_watched(const BoundaryEndpoints& boundary) const;
  void keep_sent();
  void watch();
  void end_watch();
  void add_watched(BoundaryEndpoints& boundary, std::vector<KeptMessage> gradients);
  std::vector<TriedChannel> try_links();
  SumsOfLayers sums_here() const;
  SumsOfLayers sums_of_all() const;
  void put_cosines(TriedChannel& tried, const std::vector<double>& greatest_errors,
                   const SumsOfLayers& seen) const;
  LadderErrors greatest_errors(const std::vector<TriedChannel>& mine) const;
  void put(BoundaryEndpoints& boundary, Direction direction, size_t rung);
  void put_everywhere(const LadderRungs& rungs);
  void apply(const CodecChoice& choice);

  Executor& executor_;
  Group& group_;
  CompressionOptions asked_;
  ChooseCodecs choose_;
  bool links_are_no_limit_;  ///< as TrainerOptions says
  std::vector<std::shared_ptr<const Link>> ladder_;
  SidePass side_pass_;
  std::map<std::string, LayerCosines> layers_;      ///< by boundary, those whose gradients were watched
  std::map<std::string, WatchedMessages> watched_;  ///< by boundary, of batches that are not done
  TimesOfStages warm_up_;                           ///< of the epoch's stages, what does not count
  bool is_warming_up_ = true;                       ///< until the first batch in this process is done
  std::optional<uint64_t> applied_;                 ///< CodecChoice::step of the choice whose links are in use
  Stopwatch since_last_;
  bool starting_ = false;
  bool watching_ = false;  ///< the batch under way
  bool due_ = false;
};

/// The one that held for the last step of a training that has choices, or that holds for its first.
const CodecChoice& choice_of_last_step(const TrainingState& state);

/// One line for people, of the codecs alone.
std::string describe(const CodecChoice& choice);

/// The options with the codecs of a choice, for those who only evaluate.
CompressionOptions with_choice(CompressionOptions options, const CodecChoice& choice);

}  // namespace strait
