#include "strait/checkpoint/model_file.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/named_tensors.h"
#include "strait/base/text.h"

namespace strait {
namespace {

/// A tensor of the model and where a file has it.
struct Match {
  std::string name;
  at::Tensor value;
  const TensorEntry* entry;
};

using ReadTensor = std::function<at::Tensor(const TensorEntry&)>;

/// Finds a model's tensors among those of a file, by their names, types and shapes alone.
class Matcher {
 public:
  /// `may_lack`: names of tensors of the model that the file need not have.
  Matcher(const std::filesystem::path& path, const std::vector<TensorEntry>& entries, const Model& model,
          std::set<std::string> may_lack = {})
      : path_(path.string()), model_(model), state_(model.state()), may_lack_(std::move(may_lack)) {
    for (const auto& entry : entries) add(entry);
  }

  std::vector<Match> matches() const {
    const auto unknown = unknown_names();
    std::vector<Match> matches;
    for (const auto& [name, value] : state_) {
      const TensorEntry* entry = find_or_first_of_tie(name);
      if (entry == nullptr && may_lack_.contains(name)) continue;
      if (entry == nullptr) {
        throw InputError("{}: tensor {} is missing{}", path_, in_quotes(name), suggestion(name, unknown));
      }
      check_fits(*entry, value);
      matches.push_back({name, value, entry});
    }
    if (unknown.empty()) return matches;
    throw InputError("{}: tensor {} is not part of the model{}", path_, in_quotes(find(unknown.front())->name),
                     suggestion(unknown.front(), names()));
  }

 private:
  void add(const TensorEntry& entry) {
    const auto& extras = model_.file_extras;
    if (std::ranges::any_of(extras, [&](const auto& end) { return entry.name.ends_with(end); })) return;
    const std::string& prefix = model_.file_prefix;
    const std::string name = entry.name.starts_with(prefix) ? entry.name.substr(prefix.size()) : entry.name;
    if (const auto [place, is_new] = found_.emplace(name, &entry); !is_new) {
      throw InputError("{}: tensor {} is there twice, the other time as {}", path_, in_quotes(entry.name),
                       in_quotes(place->second->name));
    }
  }

  const TensorEntry* find(const std::string& name) const {
    const auto place = found_.find(name);
    return place == found_.end() ? nullptr : place->second;
  }

  const TensorEntry* find_or_first_of_tie(const std::string& name) const {
    const TensorEntry* entry = find(name);
    const auto tie = std::ranges::find(model_.ties, name, [](const auto& pair) { return pair.second; });
    return entry == nullptr && tie != model_.ties.end() ? find(tie->first) : entry;
  }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, value] : state_) names.push_back(name);
    return names;
  }

  /// What the file has and the model has not.
  std::vector<std::string> unknown_names() const {
    const auto known = names();
    std::vector<std::string> unknown;
    for (const auto& [name, entry] : found_) {
      if (std::ranges::find(known, name) == known.end()) unknown.push_back(name);
    }
    return unknown;
  }

  void check_fits(const TensorEntry& entry, const at::Tensor& value) const {
    const bool is_float = value.scalar_type() == at::kFloat;
    const bool type_fits = entry.type == value.scalar_type() ||
                           (is_float && (entry.type == at::kHalf || entry.type == at::kBFloat16));
    if (type_fits && value.sizes() == at::IntArrayRef(entry.shape)) return;
    throw InputError("{}: tensor {} is {} of shape [{}], expected {} of shape [{}]", path_,
                     in_quotes(entry.name), safetensors_type_name(entry.type), fmt::join(entry.shape, ", "),
                     is_float ? "F32, F16 or BF16" : safetensors_type_name(value.scalar_type()),
                     fmt::join(value.sizes(), ", "));
  }

  std::string path_;
  const Model& model_;
  NamedTensors state_;
  std::set<std::string> may_lack_;
  std::map<std::string, const TensorEntry*> found_;  ///< by the model's names
};

void check_finite(const std::filesystem::path& path, const std::vector<Match>& matches,
                  const ReadTensor& read) {
  for (const auto& [name, value, entry] : matches) {
    if (!value.is_floating_point() || at::isfinite(read(*entry).to(at::kFloat)).all().item<bool>()) continue;
    throw InputError("{}: tensor {} has a value that is not finite", path.string(), in_quotes(entry->name));
  }
}

void check_ties(const std::filesystem::path& path, const std::vector<Match>& matches, const Model& model,
                const ReadTensor& read) {
  for (const auto& [first, second] : model.ties) {
    const TensorEntry& a = *std::ranges::find(matches, first, &Match::name)->entry;
    const TensorEntry& b = *std::ranges::find(matches, second, &Match::name)->entry;
    if (&a == &b || at::equal(read(a).to(at::kFloat), read(b).to(at::kFloat))) continue;
    throw InputError(
        "{}: tensor {} differs from {}, expected the same values: the model has one matrix for both",
        path.string(), in_quotes(b.name), in_quotes(a.name));
  }
}

void copy(const std::vector<Match>& matches, const ReadTensor& read) {
  const at::NoGradGuard no_grad;
  for (const auto& match : matches) match.value.copy_(read(*match.entry));
}

bool is_second_of_tie(const Model& model, const std::string& name) {
  return std::ranges::any_of(model.ties, [&](const auto& tie) { return tie.second == name; });
}

/// The files that an index of Hugging Face names, each once.
std::set<std::string> files_of_index(const std::filesystem::path& path) {
  const auto index = parse_json(read_whole(path, kJsonBytesMost), path.string());
  const auto map = index.is_object() ? index.find("weight_map") : index.end();
  if (!index.is_object() || map == index.end() || !map->is_object() || map->empty())
    throw InputError("{}: expected weight_map, an object of tensors and their files", path.string());
  std::set<std::string> files;
  for (const auto& [tensor, file] : map->items()) {
    const auto name = file.is_string() ? file.get<std::string>() : "";
    if (name.empty() || std::filesystem::path(name).filename() != name ||
        name.find('\0') != std::string::npos) {
      throw InputError("{}: tensor {} lies in {}, expected the name of a file beside the index", path.string(),
                       in_quotes(tensor), shortened(file.dump()));
    }
    files.insert(name);
  }
  return files;
}

/// The tensors of a file of weights, or of all files that an index names.
class WeightFiles {
 public:
  explicit WeightFiles(const std::filesystem::path& path) {
    for (const auto& file : weight_files(path)) {
      const auto& reader = readers_.emplace_back(file);
      for (const auto& entry : reader.header().entries) entries_.push_back(entry);
      ends_.push_back(entries_.size());
    }
  }

  const std::vector<TensorEntry>& entries() const { return entries_; }

  /// Of one of entries().
  at::Tensor read(const TensorEntry& entry) const {
    const auto place = static_cast<size_t>(&entry - entries_.data());
    const auto reader = std::ranges::upper_bound(ends_, place) - ends_.begin();
    at::Tensor tensor;
    readers_[static_cast<size_t>(reader)].read(entry, tensor);
    return tensor;
  }

 private:
  std::vector<SafetensorsReader> readers_;
  std::vector<TensorEntry> entries_;
  std::vector<size_t> ends_;  ///< of each reader's in entries_
};

void load(const std::filesystem::path& path, Model& model, std::set<std::string> may_lack) {
  const WeightFiles files(path);
  const ReadTensor read = [&](const TensorEntry& entry) { return files.read(entry); };
  const auto matches = Matcher(path, files.entries(), model, std::move(may_lack)).matches();
  check_finite(path, matches, read);
  check_ties(path, matches, model, read);
  copy(matches, read);
}

}  // namespace

std::vector<std::filesystem::path> weight_files(const std::filesystem::path& path) {
  if (path.extension() != ".json") return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& name : files_of_index(path)) files.push_back(path.parent_path() / name);
  return files;
}

TensorFile weights_of(const Model& model) { return {model.state(), {{"format", "pt"}}}; }

void save_model(const std::filesystem::path& path, const Model& model) {
  TensorFile file = weights_of(model);
  std::erase_if(file.tensors, [&](const auto& tensor) { return is_second_of_tie(model, tensor.first); });
  write_safetensors(path, file);
}

void set_weights(const std::filesystem::path& path, const TensorFile& file, Model& model) {
  std::vector<TensorEntry> entries;
  for (const auto& [name, value] : file.tensors) {
    entries.push_back({.name = name, .type = value.scalar_type(), .shape = value.sizes().vec()});
  }
  copy(Matcher(path, entries, model).matches(),
       [&](const TensorEntry& entry) { return *file.find(entry.name); });
}

void load_model(const std::filesystem::path& path, Model& model) { load(path, model, {}); }

void load_initial(const std::filesystem::path& path, Model& model) {
  std::set<std::string> added;
  for (size_t i = 0; i < model.layers.size(); ++i) {
    if (!model.layers[i].added) continue;
    for (const auto& [name, value] : model.part({i, i + 1}).state()) added.insert(name);
  }
  load(path, model, std::move(added));
}

}  // namespace strait
