#include "strait/experiment/resume.h"

#include <algorithm>
#include <array>
#include <map>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/experiment/run.h"
#include "strait/train/checkpoint_parts.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr Place kOneProcess;  // a start from another run takes the whole of its checkpoint
constexpr const char* kFinished = "the run has finished all its epochs already";

/// Keys that a run may change on its way. Other cuts are for the feedback state to refuse; with the schedule
/// "linear" every step depends on where the training ends.
bool may_change(const std::string& key, const Config& config) {
  if (key == "train.epochs" && config.train.schedule.kind == "linear") return false;
  constexpr std::array kKeys = {
      "name",         "data.root",  "train.threads",           "train.device",
      "train.epochs", "model.cuts", "compression.store.place", "compression.store.folder"};
  return std::ranges::find(kKeys, key) != kKeys.end() || key.starts_with("pipeline.") ||
         key.starts_with("checkpoint.");
}

void check_same_run(const Config& begun, const Config& now, const fs::path& source) {
  const auto before = key_values(begun);
  const auto after = key_values(now);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [key, value] = before[i];
    if (value == after[i].second || may_change(key, now)) continue;
    throw InputError("{}: the run has {} = {}, the configuration {}; --resume cannot change it",
                     source.string(), key, value, after[i].second);
  }
}

void check_not_beyond(const Position& position, const Config& config, const fs::path& folder) {
  if (position.epoch < config.train.epochs ||
      (position.epoch == config.train.epochs && position.batches == 0)) {
    return;
  }
  throw InputError("train.epochs: expected at least {}, because the checkpoint {} stands there, found {}",
                   position.epoch + (position.batches > 0 ? 1 : 0), folder.string(), config.train.epochs);
}

std::string epochs_of(const CheckpointFolder& folder) {
  std::vector<std::string> epochs;
  for (const auto& entry : folder.entries()) {
    if (entry.batches == 0) epochs.push_back(std::to_string(entry.epoch));
  }
  return epochs.empty() ? "none" : list_of(epochs);
}

/// The folder of checkpoints of a run, which may be that folder itself.
fs::path checkpoints_at(const fs::path& path) {
  return fs::exists(path / "checkpoint") ? path / "checkpoint" : path;
}

Checkpoint find_checkpoint(const fs::path& from, int epoch) {
  const auto fail = [&](const std::string& found) {
    throw InputError(
        "compression.start_from: expected {} to have a checkpoint taken before epoch {} "
        "(compression.start_epoch), found {}; checkpoint.keep_epochs makes a run keep one",
        from.string(), epoch, found);
  };
  if (fs::exists(from / "position.json")) {
    Checkpoint checkpoint({from});
    const Position& position = checkpoint.record().position;
    if (position.epoch != epoch || position.batches != 0) {
      fail(fmt::format("one at batch {} of epoch {}", position.batches, position.epoch));
    }
    return checkpoint;
  }
  const CheckpointFolder folder(checkpoints_at(from), {});
  const auto entries = folder.entries();
  const CheckpointFolder::Entry wanted{epoch, 0};
  if (std::ranges::find(entries, wanted) == entries.end()) fail("those before: " + epochs_of(folder));
  return Checkpoint(checkpoint_parts(folder.path(), wanted, kOneProcess));
}

Place place_in(const Group& group, const Config& config) {
  return {.rank = group.rank(), .ranks = group.size(), .replicas = config.pipeline.replicas};
}

}  // namespace

Beginning find_start(const Config& config) {
  Beginning beginning;
  if (config.compression.start_from.empty()) return beginning;
  beginning.another = find_checkpoint(config.compression.start_from, config.compression.start_epoch);
  check_not_beyond(beginning.another->record().position, config, beginning.another->folder());
  beginning.note = fmt::format("starting epoch {} from {}", config.compression.start_epoch + 1,
                               beginning.another->folder().string());
  return beginning;
}

Checkpoint newest_checkpoint_at(const fs::path& path) {
  if (fs::exists(path / "position.json")) return Checkpoint({path});
  const fs::path folder = checkpoints_at(path);
  const auto entries = usable_checkpoints(folder, kOneProcess);
  if (entries.empty()) throw InputError("{}: expected a checkpoint, found none", folder.string());
  return Checkpoint(checkpoint_parts(folder, entries.back(), kOneProcess));
}

std::optional<CheckpointFolder::Entry> newest_checkpoint(const Config& config, const fs::path& folder,
                                                         Group& group) {
  std::string names;
  together(group, [&] {
    for (const auto& entry : usable_checkpoints(folder / "checkpoint", place_in(group, config))) {
      names += entry.name() + "\n";
    }
  });
  std::map<CheckpointFolder::Entry, int> seen;
  for (const auto& theirs : group.gather(names)) {
    for (const auto& name : split(theirs, '\n')) {
      if (const auto entry = CheckpointFolder::entry_of(name)) ++seen[*entry];
    }
  }
  std::erase_if(seen, [&](const auto& item) { return item.second < group.size(); });
  return seen.empty() ? std::nullopt : std::optional(seen.rbegin()->first);
}

Beginning find_resume(const Config& config, const fs::path& folder,
                      const std::optional<CheckpointFolder::Entry>& newest, const Group& group) {
  const bool done = status_of(folder) == RunStatus::done;
  Beginning beginning;
  if (!newest) {
    if (done && !is_finished(config, folder)) {
      throw InputError("{}: the run is done and has no checkpoint to go on from", folder.string());
    }
    beginning.finished = done;
    beginning.note = kFinished;
    if (done) return beginning;
    if (fs::exists(folder / "config.toml")) {
      check_same_run(load_config(folder / "config.toml"), config, folder / "config.toml");
    }
    beginning = find_start(config);
    beginning.note = fmt::format("there is no checkpoint in {}; {}", folder.string(),
                                 beginning.another ? beginning.note : "starting from the beginning");
    return beginning;
  }
  const Place place = place_in(group, config);
  beginning.own = Checkpoint(checkpoint_parts(folder / "checkpoint", *newest, place), place);
  const CheckpointRecord& record = beginning.own->record();
  const auto source = beginning.own->folder() / "position.json";
  check_same_run(parse_config(record.config, source.string()), config, source);
  check_not_beyond(record.position, config, beginning.own->folder());
  beginning.finished = done && record.position.epoch == config.train.epochs;
  beginning.note =
      beginning.finished ? kFinished : fmt::format("going on from {}", beginning.own->folder().string());
  return beginning;
}

}  // namespace strait
