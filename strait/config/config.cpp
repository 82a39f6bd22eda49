#include "strait/config/config.h"

#include <xxhash.h>

#include <algorithm>
#include <concepts>
#include <cstdlib>
#include <map>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/config/config_keys.h"
#include "strait/config/layers.h"
#include "strait/config/reader.h"
#include "strait/run/idle_keys.h"

namespace strait {
namespace {

std::string literal(const std::string& text) { return toml_string(text); }
std::string literal(double number) { return toml_number(number); }
std::string literal(std::integral auto number) { return fmt::format("{}", number); }

template <class T>
std::string literal(const std::vector<T>& items);

/// Empty where nothing is set.
std::string literal(const std::optional<std::string>& text) { return text ? literal(*text) : ""; }

/// An entry of an array of tables as an inline table, with inline tables in it, of what is set.
template <HasEntryKeys Entry>
std::string literal(const Entry& entry) {
  std::vector<std::string> items;
  std::string table;
  std::vector<std::string> inner;
  const auto close = [&] {
    if (!inner.empty()) items.push_back(fmt::format("{} = {{ {} }}", table, list_of(inner)));
    inner.clear();
  };
  visit_entry_keys(
      entry, [&](std::string_view key, const auto& value, const auto& /*rule*/, std::string_view /*meaning*/) {
        const auto parts = split(key, '.');
        const std::string here = parts.size() > 1 ? parts.front() : "";
        if (here != table) close();
        table = here;
        if (literal(value).empty()) return;
        (here.empty() ? items : inner).push_back(fmt::format("{} = {}", parts.back(), literal(value)));
      });
  close();
  return fmt::format("{{ {} }}", list_of(items));
}

template <class T>
std::string literal(const std::vector<T>& items) {
  std::vector<std::string> literals;
  literals.reserve(items.size());
  for (const auto& item : items) literals.push_back(literal(item));
  return fmt::format("[{}]", list_of(literals));
}

/// Writes keys in the form of the documentation: a [table] for the first part of a key, an inline table
/// for the second.
class TomlWriter {
 public:
  template <class T>
  void operator()(std::string_view key, const T& value, const auto& /*rule*/, std::string_view /*meaning*/) {
    const auto parts = split(key, '.');
    open(parts.size() > 1 ? parts[0] : "", parts.size() > 2 ? parts[1] : "");
    if (!inline_.empty()) {
      text_ += fmt::format("{} {} = {}", text_.back() == '{' ? "" : ",", parts.back(), literal(value));
    } else {
      text_ += fmt::format("{} = {}\n", parts.back(), literal(value));
    }
  }

  std::string finish() {
    open(table_, "");
    return std::move(text_);
  }

 private:
  void open(const std::string& table, const std::string& inline_table) {
    if (table == table_ && inline_table == inline_) return;
    if (!inline_.empty()) text_ += " }\n";
    if (table != table_) text_ += fmt::format("\n[{}]\n", table);
    if (!inline_table.empty()) text_ += fmt::format("{} = {{", inline_table);
    table_ = table;
    inline_ = inline_table;
  }

  std::string text_;
  std::string table_;
  std::string inline_;
};

/// Whether codecs are chosen by what a step waits for, so that the links decide what is computed.
bool chooses_by_time(const Config& config) {
  const CompressionOptions& compression = config.compression;
  return compression.automatic.budget == 0 && std::ranges::any_of(config.model.cuts, [&](const auto& cut) {
           const auto [activations, gradients] = compression.at(cut);
           return activations.codec == kAutoCodec || gradients.codec == kAutoCodec;
         });
}

/// Of the links those that decide what is computed.
void keep_deciding_links(Config& config) {
  const bool by_time = chooses_by_time(config);
  const std::string& network = config.compression.automatic.network;
  if (!by_time || !network.empty()) config.pipeline.link.clear();
  std::erase_if(config.networks, [&](const auto& other) { return !by_time || other.name != network; });
}

/// The keys without those that change nothing that is computed.
std::vector<std::pair<std::string, std::string>> counting_values(Config config) {
  keep_deciding_links(config);
  auto values = key_values(config);
  std::erase_if(values, [&](const auto& entry) {
    const std::string& key = entry.first;
    return is_idle_key(key) || says_a_place(config, key);
  });
  return values;
}

Config resolve(TomlTable root, std::span<const std::string> overrides) {
  for (const auto& assignment : overrides) apply_override(root, assignment);
  return read_config(root);
}

}  // namespace

bool says_a_place(const Config& config, std::string_view key) {
  return key == "data.root" || key == "compression.store.place" || key == "compression.store.folder" ||
         std::ranges::any_of(data_kind(config.data.kind).keys, [&](const SettingKey& of_kind) {
           return of_kind.is_place && key == "data." + of_kind.name;
         });
}

void set_defaults_of_kinds(Config& config) {
  config.model = ModelOptions(config.model.kind);
  const DataOptions data(config.data.kind);
  config.data.batch_size = data.batch_size;
  config.data.settings = data.settings;
  const OptimizerOptions& optimizer = optimizer_kind(config.train.optimizer.kind).defaults;
  config.train.optimizer.lr = optimizer.lr;
  config.train.optimizer.weight_decay = optimizer.weight_decay;
}

Config defaults_for(const Config& kinds) {
  Config config;
  config.model.kind = kinds.model.kind;
  config.data.kind = kinds.data.kind;
  config.train.optimizer.kind = kinds.train.optimizer.kind;
  config.train.schedule.kind = kinds.train.schedule.kind;
  config.data.root = default_data_root();
  set_defaults_of_kinds(config);
  return config;
}

Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides) {
  return resolve(load_layers(path), overrides);
}

Config parse_config(std::string_view text, const std::string& source_name,
                    std::span<const std::string> overrides) {
  TomlTable root = parse_toml(text, source_name);
  if (const auto base = root.find("base"); base != root.end()) {
    throw InputError("{}: base: only a configuration in a file can have one", base->second.origin.text());
  }
  return resolve(std::move(root), overrides);
}

std::string to_toml(const Config& config) {
  TomlWriter writer;
  visit_keys(config, writer);
  return writer.finish();
}

std::vector<KeyEntry> key_entries(const Config& config) {
  std::vector<KeyEntry> entries;
  visit_keys(config, [&](std::string_view key, const auto& value, const auto& rule, std::string_view meaning) {
    entries.push_back({std::string(key), literal(value), rule.expected, std::string(meaning)});
  });
  return entries;
}

std::vector<std::pair<std::string, std::string>> key_values(const Config& config) {
  std::vector<std::pair<std::string, std::string>> values;
  for (auto& entry : key_entries(config)) values.emplace_back(std::move(entry.key), std::move(entry.value));
  return values;
}

std::vector<std::pair<std::string, std::string>> deciding_keys(const Config& config) {
  std::map<std::string, std::string> initial;
  for (auto& [key, value] : counting_values(defaults_for(config))) initial.emplace(key, value);
  auto values = counting_values(config);
  std::erase_if(values, [&](const auto& entry) {
    return !entry.first.ends_with(".kind") && initial.at(entry.first) == entry.second;
  });
  return values;
}

std::optional<std::string> differing_key(const Config& one, const Config& other) {
  const auto ours = deciding_keys(one);
  const auto theirs = deciding_keys(other);
  const auto lacks = [](const auto& keys) {
    return [&](const auto& entry) { return std::ranges::find(keys, entry) == keys.end(); };
  };
  if (const auto found = std::ranges::find_if(ours, lacks(theirs)); found != ours.end()) return found->first;
  if (const auto found = std::ranges::find_if(theirs, lacks(ours)); found != theirs.end()) return found->first;
  return std::nullopt;
}

std::string config_hash(const Config& config) {
  std::string text;
  for (const auto& [key, value] : deciding_keys(config)) text += fmt::format("{} = {}\n", key, value);
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string default_data_root() {
  const char* root = std::getenv("STRAIT_DATA");
  return root == nullptr || *root == '\0' ? "data" : root;
}

}  // namespace strait
