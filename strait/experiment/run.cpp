#include "strait/experiment/run.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>

#include <memory>
#include <tuple>

#include "strait/base/files.h"
#include "strait/base/folder_lock.h"
#include "strait/base/host.h"
#include "strait/base/mapped_memory.h"
#include "strait/base/text.h"
#include "strait/checkpoint/checkpoint_parts.h"
#include "strait/config/published.h"
#include "strait/data/kinds.h"
#include "strait/experiment/launch_mark.h"
#include "strait/experiment/published_files.h"
#include "strait/experiment/resume.h"
#include "strait/experiment/sources.h"
#include "strait/experiment/start_summary.h"
#include "strait/models/kinds.h"
#include "strait/pipeline/schedules.h"
#include "strait/planning/codec_chooser.h"
#include "strait/planning/network_simulation.h"
#include "strait/train/precision.h"
#include "strait/train/runtime.h"
#include "strait/transport/membership.h"

namespace strait {
namespace {

/// Keeps what the run folder and the outcome need, and hands everything on.
class RecordingObserver : public TrainObserver {
 public:
  RecordingObserver(std::optional<RunFolder>& folder, RunOutcome& outcome, TrainObserver& next)
      : folder_(folder), outcome_(outcome), next_(next) {}

  void on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) override {
    next_.on_batch(epoch, phase, done, total, mean_loss);
  }
  void on_epoch(const EpochMetrics& metrics) override {
    if (folder_) folder_->add_epoch(metrics);
    outcome_.epochs.push_back(metrics);
    next_.on_epoch(metrics);
  }
  void on_steps(const StepMetrics& metrics) override {
    if (folder_) folder_->add_steps(metrics);
    next_.on_steps(metrics);
  }
  void on_evaluation(const StepEvaluation& evaluation) override { next_.on_evaluation(evaluation); }
  void on_note(const std::string& line) override { next_.on_note(line); }
  bool should_stop() override { return next_.should_stop(); }

 private:
  std::optional<RunFolder>& folder_;  ///< of the first process
  RunOutcome& outcome_;
  TrainObserver& next_;
};

/// How many processes of the group are on this machine.
int processes_here(const Group& group) {
  const auto membership = membership_of_process();
  return group.size() > 1 && membership ? membership->local_size : 1;
}

/// A store without a folder of its own lies in the run's.
Config with_store_in(const std::filesystem::path& folder, Config config) {
  if (config.compression.store.folder.empty()) config.compression.store.folder = folder.string();
  return config;
}

bool has_store_file(const Config& config) {
  const auto& [compression, cuts] = std::tie(config.compression, config.model.cuts);
  return compression.store.is_in_file() &&
         (keeps_samples(compression, cuts) || keeps_classes(compression, cuts));
}

/// A store's file is made where it is needed, deep below, which does not know whose key says where. So whether
/// it can be is asked here.
void try_store_folder(const std::filesystem::path& folder) {
  try {
    const MappedMemory tried(folder);
  } catch (const InputError& error) {
    throw InputError("compression.store.folder: {}", error.what());
  }
}

RunWriter::Identity identity_of(const Config& config) {
  return {.name = config.name,
          .config = to_toml(config),
          .seed = config.seed,
          .config_hash = config_hash(config),
          .epochs = config.train.epochs,
          .first_epoch = config.compression.start_from.empty() ? 0 : config.compression.start_epoch,
          .machine = machine_description(device_of(config.train.device)),
          .threads = at::get_num_threads()};
}

bool begins_with_initial_weights(const Config& config, const Beginning& beginning) {
  return !beginning.own && !beginning.another && !initial_file(config.model).empty();
}

/// Lets the trainer take over the weights that the run begins with.
void take_over(const Config& config, const Beginning& beginning, Trainer& trainer) {
  if (beginning.own) {
    trainer.resume(*beginning.own);
  } else if (beginning.another) {
    trainer.warm_start(*beginning.another, config.compression.start_from_optimizer);
  } else if (begins_with_initial_weights(config, beginning)) {
    trainer.load_initial(initial_weights(config));
  }
}

/// A processor, a card, a number of threads and a LibTorch each round in a way of their own.
void note_other_machine(const std::filesystem::path& folder, const std::string& machine,
                        TrainObserver& observer) {
  const std::string before = recorded_machine(folder);
  if (before.empty() || before == machine) return;
  observer.on_note(
      fmt::format("the run was on {}, this is {}, which may round otherwise: the result need not be that of an "
                  "uninterrupted run bit for bit",
                  before, machine));
}

/// Makes the folder ready for the run: from here on it is this one's. The files are the first process's.
void begin_run(const Config& config, const std::filesystem::path& folder, const Beginning& beginning,
               const std::string& data, TrainObserver& observer, Group& group, Trainer& trainer,
               std::optional<RunFolder>& files) {
  const auto checkpoints = folder / "checkpoint";
  std::vector<NamedText> published;
  run_collectively(group, [&] {
    const bool lacks_them = !beginning.own || !is_there(folder / "config.json");
    if (group.rank() == 0 && lacks_them) published = published_files(config);
  });
  if (!beginning.own) {
    in_turn(group, [&] { begin_in_folder([&] { clear_run(folder); }); });
  }
  const auto holders = copy_holders(group.gather(host_name()), config.checkpoint.copies);
  trainer.keep_checkpoints(CheckpointWriter(checkpoints, group.rank(), config.checkpoint, holders),
                           to_toml(config), data);
  run_collectively(group, [&] {
    if (group.rank() != 0) return;
    if (!has_metrics(folder, trainer.metrics())) {
      observer.on_note(fmt::format("{}: is not what it was at the checkpoint, which puts it back",
                                   (folder / "metrics.jsonl").string()));
    }
    RunWriter::Identity identity = identity_of(config);
    if (beginning.own) note_other_machine(folder, identity.machine, observer);
    begin_in_folder([&] { clear_unfinished(folder); });  // of weights it may be what fills the disk
    begin_in_folder([&] { mark_launch(folder); });       // before what only a resume may find
    begin_in_folder(
        [&] { files.emplace(folder, std::move(identity), trainer.metrics(), trainer.state().step); });
    begin_in_folder([&] {
      for (const auto& [name, text] : published) replace_file(folder / name, text);
    });
  });
}

/// As far as that is possible: on a full disk the failure itself is the one to hear of.
void record_failure(RunFolder& files, const std::string& error) {
  try {
    files.set_status(RunStatus::failed, error);
  } catch (const Error&) {
    return;
  }
}

/// Where a run leaves checkpoints of its weights.
std::filesystem::path beside(const std::filesystem::path& weights) {
  const auto folder = weights.parent_path();
  return is_there(folder / "position.json") ? folder : folder / "checkpoint";
}

/// Refuses a folder in which a run that begins would replace what is not its own, or what it needs itself.
void check_may_begin(const Config& config, const std::filesystem::path& folder, Start start) {
  if (start == Start::fresh) check_is_free(folder);
  if (start == Start::resume && !holds_run(folder)) check_replaces_nothing(folder);
  check_keeps_sources(config, folder);
}

/// Where the processes together begin: they must see the same.
Beginning find_beginning(const Config& config, const std::filesystem::path& folder, Start start, Group& group) {
  Beginning beginning;
  if (start == Start::resume) beginning = find_resume(config, folder, group);
  run_collectively(group, [&] {
    if (!beginning.own && !beginning.finished) check_may_begin(config, folder, start);
    if (start != Start::resume) beginning = find_start(config);
  });
  return beginning;
}

}  // namespace

void check_store_folder(const Config& config) {
  const auto& folder = config.compression.store.folder;
  if (has_store_file(config) && !folder.empty()) try_store_folder(nearest_there(folder));
}

Trainer make_trainer(const Config& config, std::shared_ptr<Group> group, Trace* trace) {
  Model network = make_network(config, processes_here(*group));
  TrainerOptions options{.seed = config.seed,
                         .batch_size = config.data.batch_size,
                         .train = config.train,
                         .pipeline = config.pipeline,
                         .compression = config.compression,
                         .cuts = config.model.cuts,
                         .task = task_of(config.data)};
  if (!config.networks.empty()) {
    options.over_networks = [simulation = std::make_shared<NetworkSimulation>(config)](const auto& epoch,
                                                                                       const auto& before) {
      return simulation->metrics(epoch, before);
    };
  }
  if (chooses_codecs(config.compression)) {
    options.choose_codecs = codec_chooser(config);
    options.links_are_no_limit = links_are_no_limit(config, group->size());
  }
  return {std::move(network), std::move(options), std::move(group), trace};
}

RunOutcome run_experiment(const Config& config, const std::filesystem::path& folder, Start start,
                          TrainObserver& observer, std::shared_ptr<Group> group, Trace* trace,
                          const std::function<void()>& begun) {
  if (has_mark_of_launch(folder)) start = Start::resume;
  const int rank = group->rank();
  std::optional<FolderLock> lock;
  std::optional<RunFolder> files;
  std::unique_ptr<Trainer> trainer;
  RunOutcome outcome;
  try {
    check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, group->size());
    run_collectively(*group, [&] { lock.emplace(folder, rank == 0 ? "" : fmt::format("-rank-{}", rank)); });
    const Beginning beginning = find_beginning(config, folder, start, *group);
    if (!beginning.note.empty()) observer.on_note(beginning.note);
    if (beginning.finished) return {RunStatus::done, {}, {}};
    if (beginning.another) check_same_checkpoint(*beginning.another, *group);
    const LoadedData data = load_same_data(config, beginning, *group);
    if (begins_with_initial_weights(config, beginning)) check_same_weights(config, *group);
    std::vector<std::string> summary;
    run_collectively(*group, [&] {
      const Config with_store = with_store_in(folder, config);
      if (has_store_file(with_store)) try_store_folder(with_store.compression.store.folder);
      trainer.reset(new Trainer(make_trainer(with_store, group, trace)));
      trainer->check(data.splits);
    });
    trainer->check_stores(data.splits.train->size());
    run_collectively(*group, [&] {
      take_over(config, beginning, *trainer);
      if (rank != 0) return;  // before the folder changes, since this refuses codecs that save nothing
      summary =
          start_summary(config, folder, trainer->model(), data.splits, group->size(), processes_here(*group));
    });
    begin_run(config, folder, beginning, data.fingerprint, observer, *group, *trainer, files);
    if (begun) begun();
    if (files) outcome.epochs = files->epochs();
    for (const auto& line : summary) observer.on_note(line);
    RecordingObserver recorder(files, outcome, observer);
    outcome.status = trainer->train(data.splits, recorder) ? RunStatus::done : RunStatus::stopped;
    const Model& model = trainer->collect_model();
    run_collectively(*group, [&] {
      if (files) files->save_model(model);
    });
  } catch (const NumericError& error) {
    outcome.status = RunStatus::diverged;
    outcome.error = error.what();
    group->fail(failure_of(error, rank));
  } catch (const std::exception& error) {
    if (files) record_failure(*files, reason_text(error));
    group->fail(failure_of(error, rank));
    throw;
  }
  if (files) files->set_status(outcome.status, outcome.error);
  return outcome;
}

std::vector<std::string> describe_experiment(const Config& config, const std::filesystem::path& folder,
                                             Start start, const RankTopology& place, int processes_here) {
  check_process_count(static_cast<int>(config.model.cuts.size()) + 1, config.pipeline, place.ranks);
  Model model = make_network(config, processes_here);
  const auto device = device_of(config.train.device);
  check_precision(config.train.precision, device);
  check_store_folder(config);
  std::vector<std::string> lines;
  if (place.rank == 0) {
    const bool goes_on = start == Start::resume && !parts_in(folder / "checkpoint").empty();
    if (!goes_on) check_may_begin(config, folder, start);
    find_start(config);
    if (!goes_on && !initial_file(config.model).empty()) load_initial(initial_weights(config), model);
    lines = start_summary(config, folder, model, load_splits(config), place.ranks, processes_here);
  }
  if (place.ranks > 1) lines.push_back(summary_of_rank(config, model, place));
  return lines;
}

Config with_chosen_codecs(Config config, const std::filesystem::path& weights,
                          const std::filesystem::path& checkpoint) {
  if (!chooses_codecs(config.compression)) return config;
  std::string complaint = "it has no choices";
  try {
    const TrainingState state =
        newest_checkpoint_at(checkpoint.empty() ? beside(weights) : checkpoint).record().state;
    if (!state.choices.empty()) {
      config.compression = with_choice(std::move(config.compression), choice_of_last_step(state));
      return config;
    }
  } catch (const InputError& error) {
    complaint = error.what();
  }
  throw InputError(
      "{}: codec \"{}\" was chosen in training, and no checkpoint beside these weights says what it was ({}); "
      "--set compression.activations.codec and compression.gradients.codec say it, or eval's --checkpoint",
      weights.string(), kAutoCodec, complaint);
}

Evaluation evaluate_experiment(const Config& config, const std::filesystem::path& weights,
                               const std::filesystem::path& checkpoint, TrainObserver& observer) {
  if (!checkpoint.empty()) newest_checkpoint_at(checkpoint);  // it is there, whether its state is needed or not
  Config alone = with_chosen_codecs(config, weights, checkpoint);
  alone.pipeline.replicas = 1;
  alone.pipeline.link.clear();  // of the training
  check_published(config, weights);
  Trainer trainer = make_trainer(alone);
  trainer.load(weights);
  bool knows_state = true;
  if (keeps_rows(config.compression, config.model.cuts)) {
    try {
      trainer.take_evaluation_state(newest_checkpoint_at(checkpoint.empty() ? beside(weights) : checkpoint));
    } catch (const InputError& error) {
      const std::string& asked = config.compression.evaluation;
      if (!checkpoint.empty()) throw;
      if (asked != to_string(EvaluationMode::plain)) {
        throw InputError(
            "{}: these weights have no link state, which compression.evaluation = \"{}\" reads ({}); "
            "--checkpoint names the run or the checkpoint that has it",
            weights.string(), asked, error.what());
      }
      observer.on_note(fmt::format(
          "frozen and live are not scored, because these weights have no link state: {}", error.what()));
      knows_state = false;
    }
  }
  return trainer.evaluate(load_splits(config).test, observer, knows_state, config.pipeline.replicas);
}

std::optional<RunStatus> recorded_status(const Config& config, const std::filesystem::path& folder) {
  return recorded_status(config_hash(config), folder);
}

bool is_finished(const Config& config, const std::filesystem::path& folder) {
  const auto status = recorded_status(config, folder);
  return status && is_final(*status);
}

}  // namespace strait
