#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/config/model_and_data.h"
#include "strait/run/reader.h"
#include "strait/train/run_folder.h"
#include "strait/train/trainer.h"
#include "strait/transport/group_part.h"

namespace strait {

/// How a run ended.
struct RunOutcome {
  RunStatus status = RunStatus::running;  ///< done, diverged or stopped
  std::string error;                      ///< why it diverged
  std::vector<EpochMetrics> epochs;       ///< the epochs that were finished, those before a resume included
};

/// Throws InputError where state of samples is to be kept in a file and compression.store.folder, if it is set,
/// cannot hold one. Makes nothing: for a folder that is not there yet, the one where it would be made is tried.
void check_store_folder(const Config& config);

/// Builds the trainer that the configuration describes, with that network.
Trainer make_trainer(const Config& config,
                     std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>(),
                     Trace* trace = nullptr);

/// Trains what the configuration describes and leaves its files in `folder`. A divergence is an outcome;
/// any other failure is recorded in status.json and thrown on. Start::resume resumes at the folder's newest
/// checkpoint, which with the same threads gives the bits of a run that was never interrupted; from the
/// beginning where there is none; and does nothing, with an outcome without epochs, when the run is done and
/// its files are there. A process whose launch has trained in the folder already (has_mark_of_launch()) resumes
/// in any case. `begun` is called once the folder is the run's: who starts again after that is to resume.
///
/// With a group of several processes each makes this call and runs its stage. The first one leaves the run's
/// files; the others leave their parts of the checkpoints in the same folder, which may be on another machine.
RunOutcome run_experiment(const Config& config, const std::filesystem::path& folder, Start start,
                          TrainObserver& observer,
                          std::shared_ptr<Group> group = std::make_shared<SingleProcessGroup>(),
                          Trace* trace = nullptr, const std::function<void()>& begun = {});

/// What one of several processes, of which `processes_here` are on this machine, would do with
/// run_experiment(), for people: the first one says what start_summary() says, and each of several what it
/// runs. Touches no folder. Throws the InputErrors of configuration, data, initial weights, the store's folder
/// and a folder that is taken.
std::vector<std::string> describe_experiment(const Config& config, const std::filesystem::path& folder,
                                             Start start, const RankTopology& place, int processes_here);

/// A configuration whose codecs are chosen in training (kAutoCodec) with those that the training of these
/// weights ended with, by `checkpoint` or one beside the weights, as at evaluate_experiment(); any other as it
/// is. Throws InputError where no checkpoint says so.
Config with_chosen_codecs(Config config, const std::filesystem::path& weights,
                          const std::filesystem::path& checkpoint = {});

/// Scores a file's weights on the whole test set, with compression off and on.
///
/// The modes frozen and live read the state that the links had when the weights were trained. It comes from
/// `checkpoint` (newest_checkpoint_at()) or, where that is empty, from a checkpoint that lies beside the
/// weights: in their folder, or in a folder `checkpoint` in it. Its weights must be the same. Without it these
/// modes are left out, with a note that says why, unless compression.evaluation names one: then throws
/// InputError. Codecs that are chosen in training are those of with_chosen_codecs().
Evaluation evaluate_experiment(const Config& config, const std::filesystem::path& weights,
                               const std::filesystem::path& checkpoint, TrainObserver& observer);

/// How the run of an equal configuration that the folder holds stands; nothing when there is none. Throws
/// InputError when status.json is not what a run writes.
std::optional<RunStatus> recorded_status(const Config& config, const std::filesystem::path& folder);

/// Whether the folder holds a run of an equal configuration that came to its end (done or diverged).
bool is_finished(const Config& config, const std::filesystem::path& folder);

}  // namespace strait
