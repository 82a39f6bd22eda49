#include "strait/experiment/sources.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/checkpoint/checkpoint.h"
#include "strait/checkpoint/model_file.h"
#include "strait/config/model_and_data.h"
#include "strait/config/published.h"
#include "strait/data/text_data.h"
#include "strait/models/kinds.h"

namespace strait {
namespace {

/// The size of the weights' files and a digest of their bytes.
std::string fingerprint_of_weights(const std::filesystem::path& path) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> digest(XXH3_createState(), &XXH3_freeState);
  XXH3_64bits_reset(digest.get());
  uint64_t bytes = 0;
  std::vector<std::byte> space(size_t{1} << 20);
  for (const auto& name : weight_files(path)) {
    const InputFile file(name);
    for (uint64_t begin = 0; begin < file.size(); begin += space.size()) {
      const auto part = std::span(space).first(std::min<uint64_t>(space.size(), file.size() - begin));
      file.read(begin, part);
      XXH3_64bits_update(digest.get(), part.data(), part.size());
    }
    bytes += file.size();
  }
  return fmt::format("{} bytes, {:016x}", bytes, XXH3_64bits_digest(digest.get()));
}

/// A digest of the checksums of its tensors.
std::string fingerprint(const Checkpoint& checkpoint) {
  std::string sums;
  for (const auto& part : checkpoint.parts()) {
    for (const auto& [file, tensors] : part.record.checksums) {
      for (const auto& [tensor, sum] : tensors) sums += fmt::format("{} {} {:016x}\n", file, tensor, sum);
    }
  }
  return fmt::format("weights and state {:016x}", XXH3_64bits(sums.data(), sums.size()));
}

/// What processes read, each from its own machine's files, must be the same: `fingerprint` tells it from other.
void check_same(const std::string& what, const std::function<std::string()>& fingerprint, Group& group) {
  if (group.size() == 1) return;
  std::string mine;
  run_collectively(group, [&] { mine = fingerprint(); });
  const auto all = group.gather(mine);
  const auto other = std::ranges::find_if(all, [&](const auto& one) { return one != all.front(); });
  if (other == all.end()) return;
  throw InputError("{}: what rank {} has is not what rank 0 has: {}; there {}", what, other - all.begin(),
                   *other, all.front());
}

/// Keys say where data lie, and a run may resume where that is elsewhere. What they are stays, as far as a
/// fingerprint() tells.
void check_same_data(const Checkpoint& begun, const std::string& now) {
  const std::string& before = begun.record().data;
  if (before.empty() || before == now) return;
  throw InputError("{}: the run has other data ({}) than there are now ({}); --resume cannot change them",
                   (begun.folder() / kRecordFile).string(), before, now);
}

/// The path without links, as far as it leads to something.
std::filesystem::path without_links(const std::filesystem::path& path) {
  std::error_code error;  // whoever uses a path that leads in a circle refuses it
  const auto whole = std::filesystem::absolute(path);
  const auto found = std::filesystem::weakly_canonical(whole, error);
  return error ? whole.lexically_normal() : found;
}

/// Whether the place is the folder, or lies anywhere below it.
bool is_within(const std::filesystem::path& place, const std::filesystem::path& folder) {
  const auto inner = without_links(place);
  const auto outer = without_links(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

LoadedData load_same_data(const Config& config, const Beginning& beginning, Group& group) {
  LoadedData data;
  run_collectively(group, [&] {
    data.splits = load_splits(config);
    data.fingerprint = fingerprint(data.splits);
    if (beginning.own) check_same_data(*beginning.own, data.fingerprint);
  });
  check_same(
      "data", [&] { return data.fingerprint; }, group);
  return data;
}

void check_same_checkpoint(const Checkpoint& checkpoint, Group& group) {
  check_same(
      "compression.start_from", [&] { return fingerprint(checkpoint); }, group);
}

void check_same_weights(const Config& config, Group& group) {
  check_same(
      "model.init", [&] { return fingerprint_of_weights(initial_weights(config)); }, group);
}

void check_keeps_sources(const Config& config, const std::filesystem::path& folder) {
  const auto checkpoints = folder / "checkpoint";
  const auto is_folder = [&](const std::filesystem::path& place) {
    return without_links(place) == without_links(folder);
  };
  const auto check = [&](const char* what, bool is_replaced) {
    if (!is_replaced) return;
    throw InputError("{}: holds {}, which a run that begins there replaces; choose another --out",
                     folder.string(), what);
  };
  if (const auto weights = find_initial(initial_file(config.model), config.data.root)) {
    check("the weights of model.init", is_folder(std::filesystem::absolute(*weights).parent_path()) ||
                                           is_folder(without_links(*weights).parent_path()) ||
                                           is_within(*weights, checkpoints));
  }
  if (config.data.settings.has("tokenizer")) {
    const auto tokenizer = tokenizer_folder(config.data);
    check("the tokenizer of data.tokenizer", is_folder(tokenizer) || is_within(tokenizer, checkpoints));
  }
  if (const std::filesystem::path source = config.compression.start_from; !source.empty()) {
    check("the checkpoints of compression.start_from",
          is_within(source, checkpoints) || is_within(source / "checkpoint", checkpoints));
  }
}

}  // namespace strait
