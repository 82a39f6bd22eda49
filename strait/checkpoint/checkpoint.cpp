#include "strait/checkpoint/checkpoint.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <set>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/checkpoint/model_file.h"
#include "strait/formats/safetensors.h"
#include "strait/pipeline/data_parallel.h"

namespace strait {
namespace {

/// Covers type and shape too, which the format's own checks cannot vouch for.
uint64_t checksum(const TensorEntry& entry, std::span<const std::byte> bytes) {
  const uint64_t shape = XXH3_64bits(entry.shape.data(), entry.shape.size() * sizeof(int64_t));
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), shape + static_cast<uint64_t>(entry.type));
}

void check_intact(const SafetensorsReader& file, const TensorEntry& entry, const at::Tensor& value,
                  const Checksums& checksums) {
  const auto expected = checksums.find(entry.name);
  if (expected == checksums.end()) {
    throw InputError("{}: tensor {} is not in the record of position.json", file.name(), in_quotes(entry.name));
  }
  const std::span bytes(static_cast<const std::byte*>(value.data_ptr()), value.nbytes());
  if (checksum(entry, bytes) != expected->second) {
    throw InputError("{}: tensor {} does not fit its checksum in position.json", file.name(),
                     in_quotes(entry.name));
  }
}

const TensorEntry& entry_of(const SafetensorsReader& file, const std::string& name) {
  const TensorEntry* entry = file.find(name);
  if (entry == nullptr) throw InputError("{}: tensor {} is missing", file.name(), in_quotes(name));
  return *entry;
}

/// Lists tensors for writing, without the undefined ones.
class StateLister : public StateVisitor {
 public:
  void tensor(std::string_view name, at::Tensor& value) override {
    if (value.defined()) file.tensors.emplace_back(name, value);
  }
  TensorFile file;
};

/// One file of one part of a checkpoint.
struct PartFile {
  SafetensorsReader reader;
  const Checksums& checksums;
};

/// The tensors of a file that a listing names, wherever among the parts they are.
class StateLoader : public StateVisitor {
 public:
  /// `ends_may_be_one`: a name that is not there stands for its peer, see Checkpoint::load_links().
  StateLoader(std::span<const Checkpoint::Part> parts, const char* file, bool ends_may_be_one = false)
      : ends_may_be_one_(ends_may_be_one) {
    for (const auto& part : parts) {
      files_.push_back({SafetensorsReader(part.folder / file), part.record.checksums_of(file)});
      for (const auto& [name, sum] : files_.back().checksums) {
        entry_of(files_.back().reader, name);
      }
    }
  }

  void tensor(std::string_view name, at::Tensor& value) override {
    if (!load(name, value) && ends_may_be_one_) load(peer_state_name(name), value);
  }

  bool is_empty() const {
    return std::ranges::all_of(files_, [](const auto& file) { return file.reader.header().entries.empty(); });
  }
  const std::string& name() const { return files_.front().reader.name(); }
  size_t count() const { return read_.size(); }

  /// What follows the last dot of each tensor's name must be one of these.
  void expect_last_names(const std::vector<std::string>& names, std::string_view reason) const {
    expect_each(reason, [&](const std::string& name) {
      return std::ranges::find(names, name.substr(name.rfind('.') + 1)) != names.end();
    });
  }

  /// Each tensor's name must begin with one of these.
  void expect_beginnings(const std::vector<std::string>& beginnings, std::string_view reason) const {
    expect_each(reason, [&](const std::string& name) {
      return std::ranges::any_of(beginnings,
                                 [&](const auto& beginning) { return name.starts_with(beginning); });
    });
  }

  /// `reason`: whose the tensors are, and what to do about it.
  void expect_all_read(std::string_view reason) const {
    expect_each(reason, [&](const std::string& name) {
      return read_.contains(name) || read_.contains(peer_state_name(name));
    });
  }

 private:
  void expect_each(std::string_view reason, const auto& holds) const {
    for (const auto& [reader, checksums] : files_) {
      for (const auto& entry : reader.header().entries) {
        if (!holds(entry.name))
          throw InputError("{}: tensor {} {}", reader.name(), in_quotes(entry.name), reason);
      }
    }
  }

  bool load(std::string_view name, at::Tensor& value) {
    for (const auto& [reader, checksums] : files_) {
      const TensorEntry* entry = reader.find(name);
      if (entry == nullptr) continue;
      reader.read(*entry, value);
      check_intact(reader, *entry, value, checksums);
      read_.insert(entry->name);
      return true;
    }
    return false;
  }

  bool ends_may_be_one_;
  std::vector<PartFile> files_;
  std::set<std::string> read_;
};

class NameCounter : public StateVisitor {
 public:
  void tensor(std::string_view /*name*/, at::Tensor& /*value*/) override { ++count; }
  size_t count = 0;
};

/// Loads what `visit` lists. Gives false when that is something and the file has none of it.
bool load_listed(const auto& visit, StateLoader& loader) {
  const size_t before = loader.count();
  visit(loader);
  NameCounter counter;
  visit(counter);
  return loader.count() > before || counter.count == 0;
}

InputError missing_state(const StateLoader& loader, const BoundaryEndpoints& boundary) {
  return InputError(
      "{}: has no feedback state of boundary {}, which model.cuts asks for; state resumes only "
      "with the cuts that it was saved with",
      loader.name(), in_quotes(boundary.name));
}

at::Generator cpu_generator() { return at::globalContext().defaultGenerator(at::kCPU); }

at::Tensor random_state() {
  auto generator = cpu_generator();
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

}  // namespace

void write_checkpoint(const std::filesystem::path& folder, const Model& model, const StateVisit& optimizer,
                      std::vector<BoundaryEndpoints>& boundaries, const StateVisit& replicas,
                      CheckpointRecord record) {
  const auto write = [&](const char* name, const TensorFile& file) {
    Checksums& sums = record.checksums[name];
    write_safetensors(folder / name, file, [&](const TensorEntry& entry, std::span<const std::byte> bytes) {
      sums[entry.name] = checksum(entry, bytes);
    });
  };
  write(kWeightsFile, weights_of(model));
  StateLister optimizer_state;
  optimizer(optimizer_state);
  write(kOptimizerFile, optimizer_state.file);
  StateLister link_state;
  for (auto& boundary : boundaries) boundary.visit_state(link_state);
  replicas(link_state);
  write(kLinksFile, link_state.file);
  write(kRandomFile, {{{"cpu", random_state()}}, {}});
  write_record(folder, record);
}

void check_part(const std::filesystem::path& folder) {
  const CheckpointRecord record = read_record(folder);
  for (const auto& [name, checksums] : record.checksums) {
    const SafetensorsReader reader(folder / name);
    for (const auto& [tensor, sum] : checksums) {
      const TensorEntry& entry = entry_of(reader, tensor);
      at::Tensor value;
      reader.read(entry, value);
      check_intact(reader, entry, value, checksums);
    }
  }
}

Checkpoint::Checkpoint(const std::vector<std::filesystem::path>& parts, const RankTopology& reader)
    : reader_(reader) {
  for (const auto& part : parts) parts_.push_back({part, read_record(part)});
}

std::span<const Checkpoint::Part> Checkpoint::sources() const {
  const RankTopology& writers = record().place;
  if (parts_.size() != static_cast<size_t>(writers.ranks)) return parts_;  // its own
  const auto count = static_cast<size_t>(writers.pipeline_ranks());
  const auto replica = static_cast<size_t>(writers.replicas == reader_.replicas ? reader_.replica() : 0);
  return std::span(parts_).subspan(replica * count, count);
}

TrainingState Checkpoint::state() const {
  TrainingState state = record().state;
  if (record().place.is_alike(reader_) && parts_.size() == 1) return state;
  // Other processes, or stages: the first takes over the sums of all.
  state.sums = {};
  state.traffic.clear();
  state.stages.clear();
  state.layers.clear();
  // Replicas add theirs to each other's: what is of all of them counts once.
  const bool same_replicas = record().place.replicas == reader_.replicas;
  for (const auto& part : same_replicas ? sources() : std::span(parts_)) {
    if (!same_replicas && reader_.replica() > 0) break;
    for (const auto& [boundary, codecs] : part.record.state.layers) {
      for (const auto& [codec, sums] : codecs) state.layers[boundary][codec] += sums;
    }
  }
  for (const auto& part : parts_) {
    if (reader_.rank > 0) break;
    state.sums += part.record.state.sums;
    add_times(state.stages, part.record.state.stages);
    add_traffic(state.traffic, part.record.state.traffic);
  }
  return state;
}

void Checkpoint::load_weights(Model& model, const Model& network) const {
  const auto names_of = [](const Model& of) {
    std::set<std::string> names;
    for (const auto& [name, value] : of.state()) names.insert(name);
    return names;
  };
  const auto wanted = names_of(model);
  std::set<std::string> elsewhere = names_of(network);
  std::erase_if(elsewhere, [&](const std::string& name) { return wanted.contains(name); });
  TensorFile file;
  for (const auto& part : sources()) {
    const SafetensorsReader reader(part.folder / kWeightsFile);
    for (const auto& entry : reader.header().entries) {
      if (elsewhere.contains(entry.name)) continue;
      auto& value = file.tensors.emplace_back(entry.name, at::Tensor()).second;
      reader.read(entry, value);
      check_intact(reader, entry, value, part.record.checksums_of(kWeightsFile));
    }
  }
  set_weights(folder() / kWeightsFile, file, model);
}

void Checkpoint::load_optimizer(const StateVisit& optimizer, const std::vector<std::string>& last_names,
                                bool exactly) const {
  constexpr std::string_view kReason = "is no state of this optimizer (train.optimizer.kind)";
  StateLoader loader(sources(), kOptimizerFile);
  loader.expect_last_names(last_names, kReason);
  optimizer(loader);
  if (exactly) loader.expect_all_read(kReason);
}

void Checkpoint::load_links(std::vector<BoundaryEndpoints>& boundaries, const StateVisit& replicas,
                            bool exactly, bool may_lack) const {
  StateLoader loader(sources(), kLinksFile, !exactly);
  if (loader.is_empty()) return;
  if (record().place.replicas != reader_.replicas) {
    throw InputError(
        "{}: has the feedback state of {} pipeline.replicas, expected {}; state resumes only with as many",
        loader.name(), record().place.replicas, reader_.replicas);
  }
  for (auto& boundary : boundaries) {
    const auto visit = [&](StateVisitor& visitor) { boundary.visit_state(visitor); };
    if (!load_listed(visit, loader) && !may_lack) throw missing_state(loader, boundary);
  }
  if (!load_listed(replicas, loader) && !may_lack) {
    throw InputError(
        "{}: has no feedback state of the exchange between replicas for the stages that model.cuts makes; "
        "state resumes only with the cuts that it was saved with",
        loader.name());
  }
  constexpr std::string_view kReason =
      "belongs to no boundary of model.cuts; feedback state resumes only with the cuts that it was saved with";
  if (exactly) {
    loader.expect_all_read(kReason);
    return;
  }
  std::vector<std::string> beginnings = {fmt::format("{}.", DataParallel::kName)};
  for (const auto& boundary : boundaries) beginnings.push_back(boundary.name + ".");
  loader.expect_beginnings(beginnings, kReason);
}

bool Checkpoint::load_evaluation_state(std::vector<BoundaryEndpoints>& boundaries) const {
  StateLoader loader(sources(), kLinksFile, /*ends_may_be_one=*/true);
  const BoundaryEndpoints* without = nullptr;
  for (auto& boundary : boundaries) {
    const auto visit = [&](StateVisitor& visitor) { boundary.visit_evaluation_state(visitor); };
    if (!load_listed(visit, loader)) without = &boundary;
  }
  if (loader.count() > 0 && without != nullptr) throw missing_state(loader, *without);
  return loader.count() > 0;
}

void Checkpoint::load_random() const {
  StateLoader loader(sources(), kRandomFile);
  const at::Tensor now = random_state();
  at::Tensor saved;
  loader.tensor("cpu", saved);
  if (!saved.defined() || saved.scalar_type() != at::kByte || saved.sizes() != now.sizes()) {
    throw InputError("{}: tensor \"cpu\" is not the state of LibTorch's generator, {} bytes", loader.name(),
                     now.numel());
  }
  auto generator = cpu_generator();
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(saved);
}

}  // namespace strait
