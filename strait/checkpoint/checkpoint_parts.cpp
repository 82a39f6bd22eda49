#include "strait/checkpoint/checkpoint_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/checkpoint/training_state.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;

/// Whose parts there are of a checkpoint.
struct Found {
  std::set<int> ranks;
  bool any_named = false;
  bool all_named = true;
};

/// By how many processes and replicas it was written.
using Layouts = std::map<std::pair<int, int>, Found>;

/// Whether a folder without its name has all its files; the record is the last.
bool is_whole(const fs::path& folder) {
  try {
    read_record(folder);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

RankTopology writer_of(const fs::path& folder) {
  constexpr int kMaxRanks = 1 << 16;
  const RankTopology place = read_record(folder).place;
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
  in >> name >> part.writer.rank >> part.writer.ranks >> part.writer.replicas >> part.is_named;
  const auto entry = CheckpointFolder::entry_of(name);
  if (!in || !entry) throw WireError("\"{}\" is not a part of a checkpoint", line);
  part.entry = *entry;
  return part;
}

/// Of a layout that is whole, the reader's own first.
std::optional<Layouts::value_type> whole_layout(const Layouts& layouts, const RankTopology& reader) {
  std::optional<Layouts::value_type> whole;
  for (const auto& [layout, found] : layouts) {
    if (!found.any_named || std::cmp_less(found.ranks.size(), layout.first)) continue;
    if (!whole || layout == std::pair(reader.ranks, reader.replicas)) whole.emplace(layout, found);
  }
  return whole;
}

}  // namespace

std::vector<CheckpointPart> parts_in(const fs::path& checkpoints) {
  std::vector<CheckpointPart> parts;
  for (const auto& [path, rank] : CheckpointFolder::homes_in(checkpoints)) {
    const CheckpointFolder folder(path, {});
    for (const Entry& entry : folder.entries()) {
      parts.push_back({entry, writer_of(folder.path_of(entry)), true, folder.path_of(entry)});
    }
    for (const Entry& entry : folder.partial_entries()) {
      const fs::path partial = folder.partial_of(entry);
      if (is_whole(partial)) parts.push_back({entry, writer_of(partial), false, partial});
    }
  }
  return parts;
}

void name_parts(const fs::path& checkpoints, const Entry& entry) {
  for (const auto& [path, rank] : CheckpointFolder::homes_in(checkpoints)) {
    CheckpointFolder folder(path, {});
    if (is_whole(folder.partial_of(entry))) folder.publish(entry);
  }
}

std::vector<std::vector<CheckpointPart>> gather_parts(Group& group, const std::vector<CheckpointPart>& mine) {
  std::string lines;
  for (const auto& part : mine) {
    lines += fmt::format("{} {} {} {} {:d}\n", part.entry.name(), part.writer.rank, part.writer.ranks,
                         part.writer.replicas, part.is_named);
  }
  std::vector<std::vector<CheckpointPart>> all;
  for (const auto& theirs : group.gather(lines)) {
    auto& parts = all.emplace_back();
    std::istringstream in(theirs);
    for (std::string line; std::getline(in, line);) parts.push_back(part_in(line));
  }
  return all;
}

ResumePoint find_resume_point(const std::vector<std::vector<CheckpointPart>>& seen,
                              const RankTopology& reader) {
  std::map<Entry, Layouts> checkpoints;
  for (const auto& parts : seen) {
    for (const auto& part : parts) {
      Found& found = checkpoints[part.entry][{part.writer.ranks, part.writer.replicas}];
      found.ranks.insert(part.writer.rank);
      found.any_named |= part.is_named;
      found.all_named &= part.is_named;
    }
  }
  ResumePoint point;
  for (auto item = checkpoints.rbegin(); item != checkpoints.rend(); ++item) {
    const auto& [entry, layouts] = *item;
    if (const auto whole = whole_layout(layouts, reader)) {
      point.entry = entry;
      point.writers = {.rank = 0, .ranks = whole->first.first, .replicas = whole->first.second};
      point.names_all = whole->second.all_named;
      return point;
    }
    for (const auto& [layout, found] : layouts) {
      if (!found.any_named) continue;  // it was being written
      ResumePoint::Loss loss{entry, {}};
      for (int rank = 0; rank < layout.first; ++rank) {
        if (!found.ranks.contains(rank)) loss.ranks.push_back(rank);
      }
      point.losses.push_back(std::move(loss));
    }
  }
  return point;
}

std::vector<RankTopology> needed_parts(const RankTopology& writers, const RankTopology& reader,
                                       bool other_stages) {
  if (writers.is_alike(reader) && !other_stages) return {reader};
  std::vector<RankTopology> all(static_cast<size_t>(writers.ranks), writers);
  for (size_t i = 0; i < all.size(); ++i) all[i].rank = static_cast<int>(i);
  return all;
}

std::optional<std::vector<fs::path>> folders_of(const std::vector<CheckpointPart>& parts, const Entry& entry,
                                                const std::vector<RankTopology>& needed) {
  std::vector<fs::path> folders;
  for (const RankTopology& place : needed) {
    const auto found = std::ranges::find_if(parts, [&](const auto& part) { return part.is(entry, place); });
    if (found == parts.end()) return std::nullopt;
    folders.push_back(found->folder);
  }
  return folders;
}

}  // namespace strait
