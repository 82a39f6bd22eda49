#include "strait/checkpoint/checkpoint_copies.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/checkpoint/checkpoint.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using Entry = CheckpointFolder::Entry;

constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr std::array kFiles = {kWeightsFile, kOptimizerFile, kLinksFile, kRandomFile, kRecordFile};
using Sizes = std::array<uint64_t, kFiles.size()>;

uint64_t pieces_of(const Sizes& sizes) {
  uint64_t count = 0;
  for (const uint64_t size : sizes) count += (size + kPieceBytes - 1) / kPieceBytes;
  return count;
}

std::string to_text(const Sizes& sizes) {
  std::string text;
  for (const uint64_t size : sizes) text += fmt::format("{} ", size);
  return text;
}

Sizes sizes_in(const std::string& text) {
  std::istringstream in(text);
  Sizes sizes{};
  for (uint64_t& size : sizes) in >> size;
  if (!in) throw WireError("\"{}\" are not the sizes of a checkpoint's files", text);
  return sizes;
}

/// Walks through the files of a part, piece after piece, and sums up what passes.
class Walk {
 public:
  explicit Walk(const Sizes& sizes) : sizes_(sizes) {
    XXH3_64bits_reset(sum_.get());
    skip_empty();
  }

  bool has_more() const { return file_ < kFiles.size(); }
  size_t file() const { return file_; }
  uint64_t offset() const { return offset_; }
  uint64_t piece_bytes() const { return std::min(kPieceBytes, sizes_[file_] - offset_); }

  void pass(std::span<const std::byte> piece) {
    XXH3_64bits_update(sum_.get(), piece.data(), piece.size());
    offset_ += piece.size();
    skip_empty();
  }

  std::string sum() const { return std::to_string(XXH3_64bits_digest(sum_.get())); }

 private:
  void skip_empty() {
    while (has_more() && offset_ == sizes_[file_]) {
      ++file_;
      offset_ = 0;
    }
  }

  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  Sizes sizes_;
  std::unique_ptr<XXH3_state_t, Free> sum_{XXH3_createState()};
  size_t file_ = 0;
  uint64_t offset_ = 0;
};

std::span<std::byte> bytes_of(const at::Tensor& piece) {
  return {static_cast<std::byte*>(piece.data_ptr()), static_cast<size_t>(piece.nbytes())};
}

/// One rank's side of a move: it reads the pieces, or writes them.
class MoveSide {
 public:
  virtual ~MoveSide() = default;

  /// The side's turn with the disk, before the next piece passes and after the last has.
  virtual void use_disk() = 0;
  /// Lets the next piece pass, if there is one left.
  virtual void pass(Group& group) = 0;
  virtual std::string sum() const = 0;
};

class Sending : public MoveSide {
 public:
  explicit Sending(const PartMove& move) : to_(move.to) {
    for (size_t i = 0; i < kFiles.size(); ++i) {
      files_.push_back(std::make_unique<InputFile>(move.source / kFiles[i]));
      sizes_[i] = files_.back()->size();
    }
    walk_.emplace(sizes_);
  }

  const Sizes& sizes() const { return sizes_; }

  void use_disk() override {
    piece_.reset();
    if (!walk_->has_more()) return;
    piece_ = at::empty({static_cast<int64_t>(walk_->piece_bytes())}, at::kByte);
    files_[walk_->file()]->read(walk_->offset(), bytes_of(piece_));
    walk_->pass(bytes_of(piece_));
  }

  void pass(Group& group) override {
    if (piece_.defined()) group.send(piece_, to_, "a part of a checkpoint");
  }

  std::string sum() const override { return walk_->sum(); }

 private:
  int to_;
  std::vector<std::unique_ptr<InputFile>> files_;
  Sizes sizes_{};
  std::optional<Walk> walk_;
  at::Tensor piece_;
};

class Receiving : public MoveSide {
 public:
  Receiving(const PartMove& move, const Sizes& sizes) : from_(move.from), target_(move.target), walk_(sizes) {
    for (const char* name : kFiles) files_.push_back(std::make_unique<OutputFile>(move.target / name));
  }

  /// What has come of a part that the disk has no room for is of no use to anybody.
  void use_disk() override {
    try {
      take_in();
    } catch (const Error&) {
      files_.clear();
      std::error_code ignored;
      fs::remove_all(target_, ignored);
      throw;
    }
  }

  void pass(Group& group) override {
    if (piece_.defined()) group.receive(piece_, from_, "a part of a checkpoint");
  }

  std::string sum() const override { return walk_.sum(); }

 private:
  void take_in() {
    if (piece_.defined()) {
      files_[walk_.file()]->write(bytes_of(piece_));
      walk_.pass(bytes_of(piece_));
    }
    piece_.reset();
    if (walk_.has_more()) {
      piece_ = at::empty({static_cast<int64_t>(walk_.piece_bytes())}, at::kByte);
    } else {
      if (files_.empty()) return;
      for (auto& file : files_) file->finish();
      files_.clear();
      sync_to_disk(target_);
    }
  }

  int from_;
  fs::path target_;
  Walk walk_;
  std::vector<std::unique_ptr<OutputFile>> files_;
  at::Tensor piece_;
};

/// A folder that cannot be read is wrong input where a run begins, but a failure where it has written there.
void as_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    throw Error("{}", error.what());
  }
}

/// Moves of which no two have a rank in common.
void move_at_once(Group& group, const std::vector<PartMove>& moves) {
  const auto mine = std::ranges::find_if(
      moves, [&](const auto& move) { return move.from == group.rank() || move.to == group.rank(); });
  std::unique_ptr<MoveSide> side;
  std::string sizes;
  run_collectively(group, [&] {
    if (mine == moves.end() || mine->from != group.rank()) return;
    auto sending = std::make_unique<Sending>(*mine);
    sizes = to_text(sending->sizes());
    side = std::move(sending);
  });
  const auto all_sizes = group.gather(sizes);
  uint64_t pieces = 0;
  for (const auto& move : moves) {
    pieces = std::max(pieces, pieces_of(sizes_in(all_sizes[static_cast<size_t>(move.from)])));
  }
  run_collectively(group, [&] {
    if (mine == moves.end() || mine->to != group.rank()) return;
    side = std::make_unique<Receiving>(*mine, sizes_in(all_sizes[static_cast<size_t>(mine->from)]));
  });
  for (uint64_t i = 0; i <= pieces; ++i) {
    run_collectively(group, [&] {
      if (side) side->use_disk();
    });
    if (side && i < pieces) side->pass(group);
  }
  const auto sums = group.gather(side ? side->sum() : "");
  for (const auto& move : moves) {
    if (sums[static_cast<size_t>(move.from)] == sums[static_cast<size_t>(move.to)]) continue;
    throw Error("a part of a checkpoint changed on its way from rank {} to rank {}", move.from, move.to);
  }
}

}  // namespace

std::vector<std::vector<int>> copy_holders(const std::vector<std::string>& machines, int copies) {
  const int ranks = static_cast<int>(machines.size());
  if (copies == kCopiesByMachines) copies = std::set(machines.begin(), machines.end()).size() > 1 ? 1 : 0;
  copies = std::min(copies, ranks - 1);
  std::vector<std::vector<int>> holders(machines.size());
  std::vector<int> load(machines.size());
  for (int rank = 0; rank < ranks; ++rank) {
    std::set<std::string> used = {machines[static_cast<size_t>(rank)]};
    std::vector<int> others;
    for (int i = 1; i < ranks; ++i) others.push_back((rank + i) % ranks);
    for (int copy = 0; copy < copies; ++copy) {
      const auto best = std::ranges::min_element(others, {}, [&](int other) {
        const auto at = static_cast<size_t>(other);
        return std::pair(used.contains(machines[at]), load[at]);  // the first of equals is the next rank
      });
      used.insert(machines[static_cast<size_t>(*best)]);
      ++load[static_cast<size_t>(*best)];
      holders[static_cast<size_t>(rank)].push_back(*best);
      others.erase(best);
    }
  }
  return holders;
}

void move_parts(Group& group, const std::vector<PartMove>& moves) {
  std::vector<PartMove> left = moves;
  while (!left.empty()) {
    std::set<int> busy;
    const auto is_free = [&](const PartMove& move) {
      if (busy.contains(move.from) || busy.contains(move.to)) return false;
      busy.insert({move.from, move.to});
      return true;
    };
    std::vector<PartMove> now;
    std::vector<PartMove> later;
    for (auto& move : left) (is_free(move) ? now : later).push_back(std::move(move));
    move_at_once(group, now);
    left = std::move(later);
  }
}

CheckpointWriter::CheckpointWriter(const fs::path& checkpoints, int rank, const CheckpointOptions& options,
                                   std::vector<std::vector<int>> holders)
    : rank_(rank), own_(CheckpointFolder::part_of(checkpoints, rank), options), holders_(std::move(holders)) {
  for (size_t i = 0; i < holders_.size(); ++i) {
    if (std::ranges::find(holders_[i], rank) == holders_[i].end()) continue;
    const int other = static_cast<int>(i);
    copies_.push_back({other, CheckpointFolder(CheckpointFolder::copy_of(own_.path(), other), {})});
  }
}

std::vector<PartMove> CheckpointWriter::moves(const Entry& entry) const {
  std::vector<PartMove> all;
  for (size_t i = 0; i < holders_.size(); ++i) {
    const int from = static_cast<int>(i);
    for (const int to : holders_[i]) {
      PartMove& move = all.emplace_back(PartMove{from, to, {}, {}});
      if (from == rank_) move.source = own_.written(entry);
      if (to == rank_) move.target = std::ranges::find(copies_, from, &Copy::rank)->folder.partial_of(entry);
    }
  }
  return all;
}

void CheckpointWriter::write(Group& group, const Entry& entry,
                             const std::function<void(const fs::path&)>& write) {
  try {
    run_collectively(group, [&] {
      as_failure([&] {
        for (auto& copy : copies_) copy.folder.begin(entry);  // first, since it frees what a failure left
        own_.write(entry, write);
      });
    });
    as_failure([&] { move_parts(group, moves(entry)); });
  } catch (const RankGaveUp&) {  // all have heard it; of another error some may not, and go on
    own_.abandon(entry);
    for (const auto& copy : copies_) copy.folder.abandon(entry);
    throw;
  }
  run_collectively(group, [&] {
    as_failure([&] {
      own_.publish(entry);
      for (auto& copy : copies_) copy.folder.publish(entry);
    });
  });
  as_failure([&] {
    own_.prune();
    // A copy stays as long as the part of the same checkpoint that is this process's own.
    for (const auto& [path, rank] : CheckpointFolder::copies_in(own_.path())) {
      CheckpointFolder(path, {}).retain(own_.entries());
    }
  });
}

}  // namespace strait
