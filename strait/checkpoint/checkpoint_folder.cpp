#include "strait/checkpoint/checkpoint_folder.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/multiples.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kRemoved = ".removed";
constexpr const char* kCopies = "copies";

std::string name_of_rank(int rank) { return fmt::format("rank-{}", rank); }

void make_folder(const fs::path& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) throw Error("{}: cannot make the folder: {}", path.string(), error.message());
}

void move_folder(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) throw Error("{}: cannot be renamed to {}: {}", from.string(), to.string(), error.message());
}

void remove_folder(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw Error("{}: cannot be removed: {}", path.string(), error.message());
}

/// The folders in `path`; none where it does not exist.
std::vector<fs::path> folders_in(const fs::path& path) {
  std::vector<fs::path> found;
  if (!is_there(path)) return found;
  std::error_code error;
  for (fs::directory_iterator item(path, error), end; !error && item != end; item.increment(error)) {
    if (has_folder(item->path())) found.push_back(item->path());
  }
  if (error) throw InputError("{}: cannot be read: {}", path.string(), error.message());
  return found;
}

/// The folders in `path` that are called after a rank.
std::vector<CheckpointFolder::Home> rank_folders_in(const fs::path& path) {
  std::vector<CheckpointFolder::Home> found;
  for (const auto& folder : folders_in(path)) {
    const std::string name = folder.filename().string();
    int rank = 0;
    if (std::sscanf(name.c_str(), "rank-%d", &rank) == 1 && rank >= 0 && name == name_of_rank(rank)) {
      found.push_back({folder, rank});
    }
  }
  std::ranges::sort(found, {}, &CheckpointFolder::Home::rank);
  return found;
}

}  // namespace

std::string CheckpointFolder::Entry::name() const {
  return fmt::format("epoch-{:04}-batch-{:05}", epoch, batches);
}

std::optional<CheckpointFolder::Entry> CheckpointFolder::entry_of(const std::string& name) {
  Entry entry;
  if (std::sscanf(name.c_str(), "epoch-%d-batch-%ld", &entry.epoch, &entry.batches) != 2) return std::nullopt;
  return entry.name() == name ? std::optional(entry) : std::nullopt;
}

fs::path CheckpointFolder::part_of(const fs::path& checkpoints, int rank) {
  return rank == 0 ? checkpoints : checkpoints / name_of_rank(rank);
}

fs::path CheckpointFolder::copy_of(const fs::path& parts, int rank) {
  return parts / kCopies / name_of_rank(rank);
}

std::vector<CheckpointFolder::Home> CheckpointFolder::copies_in(const fs::path& parts) {
  return rank_folders_in(parts / kCopies);
}

std::vector<CheckpointFolder::Home> CheckpointFolder::homes_in(const fs::path& checkpoints) {
  std::vector<Home> homes = rank_folders_in(checkpoints);
  homes.insert(homes.begin(), {checkpoints, 0});
  const size_t own = homes.size();
  for (size_t i = 0; i < own; ++i) std::ranges::move(copies_in(homes[i].path), std::back_inserter(homes));
  return homes;
}

CheckpointFolder::CheckpointFolder(fs::path path, CheckpointOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

std::vector<CheckpointFolder::Entry> CheckpointFolder::entries() const {
  std::vector<Entry> found;
  for (const auto& folder : folders_in(path_)) {
    if (const auto entry = entry_of(folder.filename().string())) found.push_back(*entry);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<CheckpointFolder::Entry> CheckpointFolder::partial_entries() const {
  std::vector<Entry> found;
  for (const auto& folder : folders_in(path_)) {
    if (folder.extension() != kPartial) continue;
    if (const auto entry = entry_of(folder.stem().string())) found.push_back(*entry);
  }
  return found;
}

bool CheckpointFolder::is_due_before(int epoch) const {
  return keeps(epoch) || (options_.every_epochs > 0 && epoch % options_.every_epochs == 0);
}

bool CheckpointFolder::is_due_after(uint64_t step, uint64_t steps) const {
  return passes_multiple(static_cast<uint64_t>(options_.every_steps), step, steps);
}

bool CheckpointFolder::keeps(int epoch) const {
  return std::ranges::find(options_.keep_epochs, epoch) != options_.keep_epochs.end();
}

void CheckpointFolder::write(const Entry& entry, const std::function<void(const fs::path&)>& write) {
  if (is_there(path_of(entry))) return;
  const fs::path temporary = begin(entry);
  try {
    write(temporary);
    sync_to_disk(temporary);
    sync_to_disk(path_);
  } catch (...) {
    abandon(entry);
    throw;
  }
}

fs::path CheckpointFolder::partial_of(const Entry& entry) const {
  return path_ / (entry.name() + std::string(kPartial));
}

fs::path CheckpointFolder::begin(const Entry& entry) {
  remove_partial();
  make_folder(partial_of(entry));
  return partial_of(entry);
}

void CheckpointFolder::abandon(const Entry& entry) const {
  std::error_code ignored;  // an error before this one is the one to hear of
  fs::remove_all(partial_of(entry), ignored);
}

fs::path CheckpointFolder::written(const Entry& entry) const {
  return is_there(path_of(entry)) ? path_of(entry) : partial_of(entry);
}

void CheckpointFolder::publish(const Entry& entry) {
  if (is_there(path_of(entry))) return;
  move_folder(partial_of(entry), path_of(entry));
  sync_to_disk(path_);
}

void CheckpointFolder::retain(const std::vector<Entry>& kept) {
  for (const auto& entry : entries()) {
    if (std::ranges::find(kept, entry) == kept.end()) remove(entry);
  }
}

void CheckpointFolder::prune() {
  const auto all = entries();
  for (size_t i = 0; i < all.size(); ++i) {
    if (!stays(i, all)) remove(all[i]);
  }
}

void CheckpointFolder::clear() {
  remove_partial();
  for (const auto& entry : entries()) remove(entry);
}

bool CheckpointFolder::stays(size_t place, const std::vector<Entry>& all) const {
  const bool is_new = place + static_cast<size_t>(options_.keep) >= all.size();
  return is_new || (all[place].batches == 0 && keeps(all[place].epoch));
}

// A checkpoint that is half removed must not look like a whole one, nor like one that is being written.
void CheckpointFolder::remove(const Entry& entry) {
  const fs::path removed = path_ / (entry.name() + std::string(kRemoved));
  remove_folder(removed);
  move_folder(path_of(entry), removed);
  remove_folder(removed);
}

void CheckpointFolder::remove_partial() {
  for (const auto& folder : folders_in(path_)) {
    if (!entry_of(folder.stem().string())) continue;
    if (folder.extension() == kPartial || folder.extension() == kRemoved) remove_folder(folder);
  }
}

}  // namespace strait
