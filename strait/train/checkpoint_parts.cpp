#include "strait/train/checkpoint_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/train/position.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;

/// By how many processes and replicas a checkpoint was written, and whose parts there are.
using Layouts = std::map<std::pair<int, int>, std::set<int>>;

Place writer_of(const fs::path& folder) {
  constexpr int kMaxRanks = 1 << 16;
  const Place place = read_record(folder).place;
  const bool valid = place.ranks >= 1 && place.ranks <= kMaxRanks && place.rank >= 0 &&
                     place.rank < place.ranks && place.replicas >= 1 && place.ranks % place.replicas == 0;
  if (!valid) {
    throw InputError("{}: rank {} of {} in {} replicas is no place among processes",
                     (folder / kRecordFile).string(), place.rank, place.ranks, place.replicas);
  }
  return place;
}

CheckpointPart part_in(const std::string& line) {
  std::istringstream in(line);
  std::string name;
  CheckpointPart part;
  in >> name >> part.writer.rank >> part.writer.ranks >> part.writer.replicas;
  const auto entry = CheckpointFolder::entry_of(name);
  if (!in || !entry) throw WireError("\"{}\" is not a part of a checkpoint", line);
  part.entry = *entry;
  return part;
}

/// Of a layout that is whole, the reader's own first.
std::optional<Place> whole_layout(const Layouts& layouts, const Place& reader) {
  std::optional<Place> found;
  for (const auto& [layout, ranks] : layouts) {
    if (std::cmp_less(ranks.size(), layout.first)) continue;
    const Place writers{.rank = 0, .ranks = layout.first, .replicas = layout.second};
    if (!found || writers.is_alike(reader)) found = writers;
  }
  return found;
}

}  // namespace

std::vector<CheckpointPart> parts_in(const fs::path& checkpoints) {
  std::vector<CheckpointPart> parts;
  for (const auto& [path, rank] : CheckpointFolder::homes_in(checkpoints)) {
    const CheckpointFolder folder(path, {});
    for (const Entry& entry : folder.entries()) {
      parts.push_back({entry, writer_of(folder.path_of(entry)), folder.path_of(entry)});
    }
    for (const Entry& entry : folder.partial_entries()) {
      parts.push_back({entry, {.rank = rank, .ranks = 0, .replicas = 0}, {}});
    }
  }
  return parts;
}

void withdraw_after(const fs::path& checkpoints, const Entry& entry) {
  for (const auto& home : CheckpointFolder::homes_in(checkpoints)) {
    CheckpointFolder(home.path, {}).withdraw_after(entry);
  }
}

std::vector<std::vector<CheckpointPart>> gather_parts(Group& group, const std::vector<CheckpointPart>& mine) {
  std::string lines;
  for (const auto& [entry, writer, folder] : mine) {
    lines += fmt::format("{} {} {} {}\n", entry.name(), writer.rank, writer.ranks, writer.replicas);
  }
  std::vector<std::vector<CheckpointPart>> all;
  for (const auto& theirs : group.gather(lines)) {
    auto& parts = all.emplace_back();
    std::istringstream in(theirs);
    for (std::string line; std::getline(in, line);) parts.push_back(part_in(line));
  }
  return all;
}

ResumePoint find_resume_point(const std::vector<std::vector<CheckpointPart>>& seen, const Place& reader) {
  std::map<Entry, Layouts> complete;
  std::map<Entry, std::set<int>> begun;
  for (const auto& parts : seen) {
    for (const auto& part : parts) {
      const Place& writer = part.writer;
      if (part.is_complete()) {
        complete[part.entry][{writer.ranks, writer.replicas}].insert(writer.rank);
      } else {
        begun[part.entry].insert(writer.rank);
      }
    }
  }
  ResumePoint point;
  for (auto item = complete.rbegin(); item != complete.rend(); ++item) {
    const auto& [entry, layouts] = *item;
    if (const auto whole = whole_layout(layouts, reader)) {
      point.entry = entry;
      point.writers = *whole;
      return point;
    }
    point.has_newer = true;
    for (const auto& [layout, ranks] : layouts) {
      ResumePoint::Loss loss{entry, {}};
      for (int rank = 0; rank < layout.first; ++rank) {
        if (!ranks.contains(rank) && !begun[entry].contains(rank)) loss.ranks.push_back(rank);
      }
      if (!loss.ranks.empty()) point.losses.push_back(std::move(loss));
    }
  }
  return point;
}

std::vector<Place> needed_parts(const Place& writers, const Place& reader) {
  if (writers.is_alike(reader)) return {reader};
  std::vector<Place> all(static_cast<size_t>(writers.ranks), writers);
  for (size_t i = 0; i < all.size(); ++i) all[i].rank = static_cast<int>(i);
  return all;
}

std::optional<std::vector<fs::path>> folders_of(const std::vector<CheckpointPart>& parts, const Entry& entry,
                                                const std::vector<Place>& needed) {
  std::vector<fs::path> folders;
  for (const Place& place : needed) {
    const auto found = std::ranges::find_if(parts, [&](const auto& part) { return part.is(entry, place); });
    if (found == parts.end()) return std::nullopt;
    folders.push_back(found->folder);
  }
  return folders;
}

}  // namespace strait
