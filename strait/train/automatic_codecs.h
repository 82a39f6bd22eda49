#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/base/clock.h"
#include "strait/boundary/codec_trial.h"
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

/// What measuring cosines takes, and for how long they would count.
struct TrialTerms {
  size_t reference = 0;       ///< the rung whose gradients those of others are compared with
  int64_t batches = 0;        ///< that go forward and back with the reference, and with each codec to measure
  int64_t batches_ahead = 0;  ///< of training, for which a cosine measured now would count
  bool compared = false;      ///< whether the gradients of the reference are there already
};

/// What one process knows when codecs are to be chosen; all of them together know everything.
struct ChoiceFacts {
  std::vector<TriedChannel> channels;  ///< in the order of boundaries
  TimesOfStages stages;                ///< of the first replica and the epoch, since its stages have warmed up
  double since_last = 0;               ///< seconds since the last choice, or since training began here

  LadderCosines cosines;   ///< that hold, the same on every process; one entry for each codec of the ladder
  TrialTerms trial_terms;  ///< of those that are not known, likewise
};

/// Measures an entry of LadderCosines, of the codec at that place of the ladder. Collective: the same on every
/// process.
using MeasureCosine = std::function<double(Direction direction, size_t rung)>;

/// Makes the next choice of what all processes know: its codecs, with the time and the steps that are expected
/// of them, and the time that what it measured is expected to have taken. Collective: the same on every
/// process.
using ChooseCodecs =
    std::function<CodecChoice(const ChoiceFacts& mine, Group& group, const MeasureCosine& cosine)>;

/// The links of boundaries whose codec is kAutoCodec. A training begins with the strongest codec of the ladder
/// whose errors of the first messages are small, so that no link is waited for long before anything is known of
/// it; the first choice follows after a few steps, and the next ones when training has made twice as many
/// steps, with the last step of each epoch, or more often. A choice holds from the next step on. From the 32nd
/// step on the cosines of codecs may be measured; one holds until training has made four times as many steps,
/// and one below 0.7 sixteen times as many.
class AutomaticCodecs {
 public:
  /// `asked` is what the configuration says. The executor and the placement must outlive this.
  AutomaticCodecs(Executor& executor, Placement& placement, CompressionOptions asked, ChooseCodecs choose);

  /// Brings the links to where the state was. At the beginning of a training its choice is the strongest codec,
  /// until start().
  void begin(TrainingState& state);

  /// Whether start() is due before the next batch.
  bool is_starting() const { return starting_; }

  /// Replaces the choice by the one to begin training with, of the messages of some rows of the first batch.
  /// Collective.
  void start(TrainingState& state, const StepInput& batch);

  /// Before a batch, with which so many steps of the optimizer end. The training has so many epochs of so many
  /// batches.
  void before_batch(const TrainingState& state, int64_t steps, int64_t batches, int64_t epochs);

  /// Whether choose() is due behind the batch that before_batch() was called for.
  bool is_due() const { return due_; }

  /// Adds the next choice to the state, whose times are up to date, behind a batch. Where gradients are to be
  /// compared it asks for so many of the epoch's last batches, or those that there are, this one among them.
  /// Collective.
  void choose(TrainingState& state, const std::function<std::vector<StepInput>(int64_t most)>& last_batches);

  /// Behind the first batch: the times of the epoch until now do not count, since stages were warming up.
  void warmed_up(const TrainingState& state) {
    warm_up_ = state.stages;
    is_warming_up_ = false;
  }

  /// Whether that is to be said.
  bool is_warming_up() const { return is_warming_up_; }

  /// Before an epoch: drops the choices that hold for none of its steps.
  static void begin_epoch(TrainingState& state);

  /// The choices that held in the epoch that is done.
  static std::vector<CodecChoice> of_epoch(const TrainingState& state);

 private:
  using LadderRungs = std::array<size_t, 2>;                ///< by Direction, a place in the ladder
  using LadderErrors = std::array<std::vector<double>, 2>;  ///< likewise, for each codec of the ladder

  static bool is_provisional(const TrainingState& state) {
    return state.choices.empty() || !state.choices.back().is_tried();
  }
  std::vector<std::shared_ptr<const Link>> links_to_try(const std::string& boundary,
                                                        const ChannelEndpoints& channel,
                                                        Direction direction) const;
  bool is_chosen(const std::string& boundary, Direction direction) const;
  CodecChoice provisional(const LadderRungs& rungs, uint64_t step) const;
  void keep_messages();
  std::vector<TriedChannel> try_links();
  LadderErrors greatest_errors(const std::vector<TriedChannel>& mine) const;
  MeasuredCosines measured_before(const TrainingState& state) const;
  ChoiceFacts facts_of(const TrainingState& state, LadderCosines holding);
  void put(BoundaryEndpoints& boundary, Direction direction, size_t rung);
  void put_everywhere(const LadderRungs& rungs);
  void apply(const CodecChoice& choice);

  Executor& executor_;
  Group& group_;
  CompressionOptions asked_;
  ChooseCodecs choose_;
  std::vector<std::shared_ptr<const Link>> ladder_;
  SidePass side_pass_;
  std::vector<int> stages_;          ///< of its parameters
  TimesOfStages warm_up_;            ///< of the epoch's stages, what does not count
  bool is_warming_up_ = true;        ///< until the first batch in this process is done
  std::optional<uint64_t> applied_;  ///< CodecChoice::step of the choice whose links are in use
  Stopwatch since_last_;
  int64_t ahead_ = 0;  ///< TrialTerms::batches_ahead
  bool starting_ = false;
  bool due_ = false;
};

/// The one that held for the last step of a training that has choices, or that holds for its first.
const CodecChoice& choice_of_last_step(const TrainingState& state);

/// One line for people, of the codecs alone.
std::string describe(const CodecChoice& choice);

/// The options with the codecs of a choice, for those who only evaluate.
CompressionOptions with_choice(CompressionOptions options, const CodecChoice& choice);

}  // namespace strait
