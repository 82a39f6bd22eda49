#include "strait/train/checkpoint_parts.h"

#include <algorithm>

#include "strait/train/position.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;

fs::path part(const fs::path& checkpoints, const Entry& entry, int rank) {
  return CheckpointFolder::part_of(checkpoints, rank) / entry.name();
}

}  // namespace

std::vector<fs::path> checkpoint_parts(const fs::path& checkpoints, const Entry& entry, const Place& place) {
  const fs::path own = part(checkpoints, entry, place.rank);
  if (fs::exists(own) && read_record(own).place.is_alike(place)) return {own};
  const fs::path first = part(checkpoints, entry, 0);
  if (!fs::exists(first)) return {};
  std::vector<fs::path> all;
  for (int i = 0; i < read_record(first).place.ranks; ++i) {
    all.push_back(part(checkpoints, entry, i));
    if (!fs::exists(all.back())) return {};
  }
  return all;
}

std::vector<Entry> usable_checkpoints(const fs::path& checkpoints, const Place& place) {
  auto entries = CheckpointFolder(checkpoints, {}).entries();
  if (place.rank > 0) {
    for (const Entry& entry :
         CheckpointFolder(CheckpointFolder::part_of(checkpoints, place.rank), {}).entries()) {
      if (std::ranges::find(entries, entry) == entries.end()) entries.push_back(entry);
    }
    std::sort(entries.begin(), entries.end());
  }
  std::erase_if(entries,
                [&](const Entry& entry) { return checkpoint_parts(checkpoints, entry, place).empty(); });
  return entries;
}

}  // namespace strait
