#include "strait/experiment/resume.h"

#include <algorithm>
#include <array>
#include <set>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"
#include "strait/checkpoint/checkpoint_copies.h"
#include "strait/checkpoint/checkpoint_parts.h"
#include "strait/config/published.h"
#include "strait/experiment/run.h"
#include "strait/models/kinds.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/learning_rate.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr RankTopology kOneProcess;  // a start from another run takes the whole of its checkpoint
constexpr const char* kFinished = "the run has finished all its epochs already";
constexpr std::array kFilesOfDone = {"config.toml", "metrics.jsonl", "model.safetensors"};

/// Keys that a run may change on its way. Other cuts are for the feedback state to refuse; with some schedules
/// every step depends on where the training ends, and what a step is may be up to the pipeline's schedule.
bool may_change(const std::string& key, const Config& begun, const Config& now) {
  if (key == "train.epochs" && rate_schedule_kind(now.train.schedule.kind).depends_on_end) return false;
  const WeightVersions versions = weight_versions(begun.pipeline.schedule);
  if (key == "pipeline.schedule") return versions == weight_versions(now.pipeline.schedule);
  if (key == "pipeline.micro_batches") return !steps_per_micro_batch(versions);
  constexpr std::array kKeys = {"name",         "networks",        "train.threads", "train.device",
                                "train.epochs", "train.log_every", "model.cuts"};
  return says_a_place(now, key) || std::ranges::find(kKeys, key) != kKeys.end() ||
         key.starts_with("pipeline.") || key.starts_with("checkpoint.");
}

/// Where keys that nothing sets have come from, when that is gone; empty where it is not.
std::string advice_on_initial(const std::string& key, const Config& now, const fs::path& folder) {
  const std::string init = initial_file(now.model);
  if (!key.starts_with("model.") || init.empty() || find_initial(init, now.data.root)) return "";
  return fmt::format(
      "; model.init: no file {}, here or below data.root, which says what nothing sets; {}, where all is set, "
      "resumes without it",
      init, (folder / "config.toml").string());
}

/// `folder` is the run's.
void check_same_run(const Config& begun, const Config& now, const fs::path& source, const fs::path& folder) {
  const auto before = key_values(begun);
  const auto after = key_values(now);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [key, value] = before[i];
    if (value == after[i].second || may_change(key, begun, now)) continue;
    throw InputError("{}: the run has {} = {}, the configuration {}; --resume cannot change it{}",
                     source.string(), key, value, after[i].second, advice_on_initial(key, now, folder));
  }
}

void check_not_beyond(const TrainingState& state, const Config& config, const fs::path& folder) {
  if (state.epoch < config.train.epochs || (state.epoch == config.train.epochs && state.batches == 0)) {
    return;
  }
  throw InputError("train.epochs: expected at least {}, because the checkpoint {} stands there, found {}",
                   state.epoch + (state.batches > 0 ? 1 : 0), folder.string(), config.train.epochs);
}

/// What a batch of an epoch is depends on how many replicas share it.
void check_replicas(const CheckpointRecord& record, const Config& config, const fs::path& folder) {
  if (record.state.batches == 0 || record.place.replicas == config.pipeline.replicas) return;
  throw InputError(
      "pipeline.replicas: expected {}, because the checkpoint {} stands within an epoch, found {}; another "
      "number resumes from the end of one (checkpoint.keep)",
      record.place.replicas, folder.string(), config.pipeline.replicas);
}

std::string text_of(const ResumePoint::Loss& loss) {
  std::vector<std::string> ranks;
  for (const int rank : loss.ranks) ranks.push_back(std::to_string(rank));
  const char* plural = ranks.size() > 1 ? "s" : "";
  return fmt::format("{} lacks the part{} of rank{} {}", loss.entry.name(), plural, plural, list_of(ranks));
}

std::string text_of(const std::vector<ResumePoint::Loss>& losses) {
  std::string text;
  for (const auto& loss : losses) text += (text.empty() ? "" : "; ") + text_of(loss);
  return text;
}

std::string epochs_of(const std::vector<CheckpointPart>& parts) {
  std::set<int> epochs;
  for (const auto& part : parts) {
    if (part.is_named && part.entry.batches == 0) epochs.insert(part.entry.epoch);
  }
  std::vector<std::string> names;
  names.reserve(epochs.size());
  for (const int epoch : epochs) names.push_back(std::to_string(epoch));
  return names.empty() ? "none" : list_of(names);
}

/// The folder of checkpoints of a run, which may be that folder itself.
fs::path checkpoints_at(const fs::path& path) {
  return is_there(path / "checkpoint") ? path / "checkpoint" : path;
}

Checkpoint find_checkpoint(const fs::path& from, int epoch) {
  const auto fail = [&](const std::string& found) {
    throw InputError(
        "compression.start_from: expected {} to have a checkpoint taken before epoch {} "
        "(compression.start_epoch), found {}; checkpoint.keep_epochs makes a run keep one",
        from.string(), epoch, found);
  };
  if (!has_folder(from)) {
    throw InputError("compression.start_from: {}: expected the folder of a run or of a checkpoint",
                     from.string());
  }
  if (is_there(from / kRecordFile)) {
    Checkpoint checkpoint({from});
    const TrainingState& state = checkpoint.record().state;
    if (state.epoch != epoch || state.batches != 0) {
      fail(fmt::format("one at batch {} of epoch {}", state.batches, state.epoch));
    }
    return checkpoint;
  }
  const CheckpointFolder::Entry wanted{epoch, 0};
  const auto all = parts_in(checkpoints_at(from));
  auto parts = all;
  std::erase_if(parts, [&](const auto& part) { return part.entry != wanted || !part.is_named; });
  if (parts.empty()) fail("those before: " + epochs_of(all));
  const ResumePoint point = find_resume_point({parts}, kOneProcess);
  if (!point.entry) {
    throw InputError("compression.start_from: {}: {}", from.string(), text_of(point.losses));
  }
  return Checkpoint(folders_of(parts, wanted, needed_parts(point.writers, kOneProcess)).value());
}

RankTopology place_in(const Group& group, const Config& config) {
  return {.rank = group.rank(), .ranks = group.size(), .replicas = config.pipeline.replicas};
}

void check_nothing_lost(const ResumePoint& point, const fs::path& checkpoints) {
  if (point.losses.empty()) return;
  const std::string older =
      point.entry ? fmt::format(", remove the rest of it to resume from {}", point.entry->name()) : "";
  throw InputError("{}: {}, which no rank has; bring it back{}, or start anew with --overwrite",
                   checkpoints.string(), text_of(point.losses), older);
}

/// Whether the checkpoint is of other stages than the configuration's. Collective: not every process may have a
/// part of it.
bool has_other_stages(const ResumePoint& point, const std::vector<CheckpointPart>& mine, const Config& config,
                      Group& group) {
  constexpr const char* kOther = "other";
  std::string found;
  run_collectively(group, [&] {
    const auto part = std::ranges::find_if(
        mine, [&](const auto& one) { return one.entry == *point.entry && one.writer.is_alike(point.writers); });
    if (part == mine.end()) return;
    const auto source = part->folder / kRecordFile;
    const Config begun = parse_config(read_record(part->folder).config, source.string());
    if (begun.model.cuts != config.model.cuts) found = kOther;
  });
  const auto all = group.gather(found);
  return std::ranges::find(all, kOther) != all.end();
}

/// Brings each process the parts that it needs and does not have. Gives a line about each that came.
std::string fetch_parts(const ResumePoint& point, bool other_stages,
                        const std::vector<std::vector<CheckpointPart>>& seen,
                        const std::vector<CheckpointPart>& mine, const fs::path& checkpoints,
                        const RankTopology& place, Group& group) {
  std::vector<PartMove> moves;
  std::vector<CheckpointFolder> targets;
  std::string notes;
  for (int rank = 0; rank < group.size(); ++rank) {
    const RankTopology reader{.rank = rank, .ranks = place.ranks, .replicas = place.replicas};
    for (const RankTopology& needed : needed_parts(point.writers, reader, other_stages)) {
      const auto has = [&](const auto& parts) { return folders_of(parts, *point.entry, {needed}).has_value(); };
      if (has(seen[static_cast<size_t>(rank)])) continue;
      const int from = static_cast<int>(std::ranges::find_if(seen, has) - seen.begin());
      PartMove& move = moves.emplace_back(PartMove{from, rank, {}, {}});
      notes += fmt::format("; the part of rank {} comes from rank {}", needed.rank, from);
      if (from == place.rank) move.source = folders_of(mine, *point.entry, {needed})->front();
      if (rank != place.rank) continue;
      const fs::path own = CheckpointFolder::part_of(checkpoints, rank);
      const bool is_own = needed.rank == rank && point.writers.is_alike(reader);
      targets.emplace_back(is_own ? own : CheckpointFolder::copy_of(own, needed.rank), CheckpointOptions());
      move.target = targets.back().partial_of(*point.entry);
    }
  }
  if (moves.empty()) return notes;
  run_collectively(group, [&] {
    for (const auto& move : moves) {
      if (move.from == place.rank) check_part(move.source);
    }
    for (auto& target : targets) {
      if (const fs::path there = target.path_of(*point.entry); is_there(there)) {
        throw InputError(
            "{}: expected none, or a part of {} processes in {} replicas, which another machine has; move "
            "this one away",
            there.string(), point.writers.ranks, point.writers.replicas);
      }
      target.begin(*point.entry);
    }
  });
  move_parts(group, moves);
  run_collectively(group, [&] {
    for (auto& target : targets) target.publish(*point.entry);
  });
  return notes;
}

/// What the folder of a run that is done has not any more, and resuming would make again.
std::string files_lost_in(const fs::path& folder) {
  std::vector<std::string> lost;
  for (const char* name : kFilesOfDone) {
    if (!is_there(folder / name)) lost.emplace_back(name);
  }
  return list_of(lost);
}

/// A run of which nobody has a checkpoint. `done`: its status says so.
Beginning begin_anew(const Config& config, const fs::path& folder, bool done) {
  if (done) throw InputError("{}: the run is done and has no checkpoint to resume from", folder.string());
  if (is_there(folder / "config.toml")) {
    check_same_run(load_config(folder / "config.toml"), config, folder / "config.toml", folder);
  }
  Beginning beginning = find_start(config);
  beginning.note = fmt::format("there is no checkpoint in {}; {}", folder.string(),
                               beginning.another ? beginning.note : "starting from the beginning");
  return beginning;
}

}  // namespace

Beginning find_start(const Config& config) {
  Beginning beginning;
  if (config.compression.start_from.empty()) return beginning;
  beginning.another = find_checkpoint(config.compression.start_from, config.compression.start_epoch);
  check_not_beyond(beginning.another->record().state, config, beginning.another->folder());
  beginning.note = fmt::format("starting epoch {} from {}", config.compression.start_epoch + 1,
                               beginning.another->folder().string());
  return beginning;
}

Checkpoint newest_checkpoint_at(const fs::path& path) {
  if (is_there(path / kRecordFile)) return Checkpoint({path});
  const fs::path folder = checkpoints_at(path);
  const auto parts = parts_in(folder);
  const ResumePoint point = find_resume_point({parts}, kOneProcess);
  if (!point.losses.empty()) throw InputError("{}: {}", folder.string(), text_of(point.losses));
  if (!point.entry) throw InputError("{}: expected a checkpoint, found none", folder.string());
  return Checkpoint(folders_of(parts, *point.entry, needed_parts(point.writers, kOneProcess)).value());
}

Beginning find_resume(const Config& config, const fs::path& folder, Group& group) {
  const fs::path checkpoints = folder / "checkpoint";
  const RankTopology place = place_in(group, config);
  std::vector<CheckpointPart> mine;
  std::string state;
  std::string lost;
  run_collectively(group, [&] {
    mine = parts_in(checkpoints);
    if (status_of(folder) != RunStatus::done) return;
    state = is_finished(config, folder) ? "finished" : "done";
    lost = files_lost_in(folder);
  });
  state = group.gather(state).front();  // only the first process has the run's files
  lost = group.gather(lost).front();
  const auto seen = gather_parts(group, mine);
  const ResumePoint point = find_resume_point(seen, place);
  Beginning beginning;
  if (state == "finished" && (!point.entry || !point.losses.empty())) {
    beginning.finished = true;
    beginning.note = kFinished;
    return beginning;
  }
  run_collectively(group,
                   [&] { check_nothing_lost(point, checkpoints); });  // all refuse it before anybody goes
  if (!point.entry) {
    run_collectively(group, [&] { beginning = begin_anew(config, folder, !state.empty()); });
    return beginning;
  }
  if (!point.names_all) {
    in_turn(group, [&] { name_parts(checkpoints, *point.entry); });
    run_collectively(group, [&] { mine = parts_in(checkpoints); });
  }
  const bool other_stages = has_other_stages(point, mine, config, group);
  const std::string notes = fetch_parts(point, other_stages, seen, mine, checkpoints, place, group);
  run_collectively(group, [&] {
    const auto needed = needed_parts(point.writers, place, other_stages);
    beginning.own = Checkpoint(folders_of(parts_in(checkpoints), *point.entry, needed).value(), place);
    for (const auto& part : beginning.own->parts()) {
      const auto source = part.folder / kRecordFile;
      check_same_run(parse_config(part.record.config, source.string()), config, source, folder);
    }
    check_not_beyond(beginning.own->record().state, config, beginning.own->folder());
    check_replicas(beginning.own->record(), config, beginning.own->folder());
  });
  const bool done = !state.empty() && beginning.own->record().state.epoch == config.train.epochs;
  beginning.finished = done && lost.empty();
  const std::string reason = lost.empty() ? "" : fmt::format(", because the run is done but lacks {}", lost);
  beginning.note = beginning.finished
                       ? kFinished
                       : fmt::format("resuming from {}{}{}", beginning.own->folder().string(), reason, notes);
  return beginning;
}

}  // namespace strait
