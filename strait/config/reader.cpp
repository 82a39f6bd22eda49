#include "strait/config/reader.h"

#include <algorithm>
#include <concepts>
#include <functional>
#include <limits>

#include "strait/base/error.h"
#include "strait/base/literal.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/config/config_keys.h"
#include "strait/config/kinds.h"
#include "strait/config/published.h"
#include "strait/tokenizer/tokenizer_files.h"
#include "strait/train/step_plan.h"

namespace strait {
namespace {

/// The keys that there are with the kinds of the configuration.
std::vector<std::string> keys_of(const Config& config) {
  std::vector<std::string> keys;
  for (auto& [key, value] : key_values(config)) keys.push_back(std::move(key));
  return keys;
}

/// What may stand in the table `prefix` ("" or "train."), as whole keys.
std::vector<std::string> children_of(const std::string& prefix, const std::vector<std::string>& keys) {
  std::vector<std::string> children;
  for (const auto& key : keys) {
    if (!key.starts_with(prefix)) continue;
    auto child = key.substr(0, key.find('.', prefix.size()));
    if (children.empty() || children.back() != child) children.push_back(std::move(child));
  }
  return children;
}

/// The setting with which there is such a key; empty where there is none.
std::string setting_with(const std::string& key) {
  std::string table;
  std::vector<std::string> kinds;
  for (const auto& choice : all_kinds()) {
    if (!key.starts_with(choice.table)) continue;
    const auto keys = keys_of(choice.config);
    if (std::ranges::find(keys, key) == keys.end()) continue;
    table = choice.table;
    kinds.push_back(choice.kind);
  }
  return kinds.empty() ? "" : setting_of(table, kinds);
}

/// The end of the message about an unknown key: that it is one but for its quotation marks, the kind it belongs
/// to, a key of that very name below its table or in another, or the nearest key of its table.
std::string hint_for(const std::string& prefix, const std::string& name, const std::vector<std::string>& keys) {
  if (prefix.empty() && (name == "variants" || name == "grid" || name == "seeds" || name == "title")) {
    return "; a file with it is for strait sweep";
  }
  if (std::ranges::find(keys, prefix + name) != keys.end()) {
    return ": in quotation marks its dots are a part of a name";
  }
  if (const auto setting = setting_with(prefix + name); !setting.empty()) {
    return fmt::format("; it is one with {}", setting);
  }
  for (const auto& table : {prefix, std::string()}) {
    const auto is_same = [&](const auto& key) { return key.starts_with(table) && key.ends_with("." + name); };
    const auto same = std::ranges::find_if(keys, is_same);
    if (same != keys.end()) return fmt::format(" (did you mean \"{}\"?)", *same);
  }
  std::vector<std::string> near;
  for (const auto& child : children_of(prefix, keys)) {
    const std::string last[] = {child.substr(prefix.size())};
    if (!suggestion(name, last).empty()) near.push_back(child);
  }
  return suggestion(prefix + name, near);
}

/// The end of the message about a text in the place of the table `key`: most likely it is of the key that says
/// what the table is about.
std::string hint_for_text(const std::string& key, const std::vector<std::string>& keys) {
  for (const char* name : {".kind", ".codec"}) {
    if (std::ranges::find(keys, key + name) != keys.end())
      return fmt::format(" (did you mean \"{}{}\"?)", key, name);
  }
  return "";
}

void check_names(const TomlTable& table, const std::string& prefix, const std::vector<std::string>& keys) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + name;
    if (name.find('.') == std::string::npos && std::ranges::find(keys, key) != keys.end()) continue;
    const bool is_table =
        name.find('.') == std::string::npos &&
        std::ranges::any_of(keys, [&](const auto& known) { return known.starts_with(key + "."); });
    if (!is_table) {
      throw InputError("{}: unknown key {}{}", node.origin.text(), toml_string(key),
                       hint_for(prefix, name, keys));
    }
    const auto* inner = node.get<TomlTable>();
    if (inner == nullptr) {
      throw InputError("{}: {}: expected a table, found {}{}", node.origin.text(), key, describe(node),
                       node.get<std::string>() == nullptr ? "" : hint_for_text(key, keys));
    }
    check_names(*inner, key + ".", keys);
  }
}

/// The entry `[place]` of an array, or nullptr.
const TomlNode* entry_of(const TomlNode& node, const std::string& place) {
  const auto* array = node.get<TomlNode::Array>();
  const size_t index = std::stoul(place);
  return array == nullptr || index >= array->size() ? nullptr : &array->at(index);
}

/// The value at a dotted key, or nullptr. A part of a key may name an entry of an array: boundaries[0].
const TomlNode* find(const TomlTable& root, std::string_view key) {
  const TomlTable* table = &root;
  const TomlNode* node = nullptr;
  for (const auto& part : split(key, '.')) {
    const size_t bracket = part.find('[');
    const auto found = table == nullptr ? root.end() : table->find(part.substr(0, bracket));
    if (table == nullptr || found == table->end()) return nullptr;
    node = bracket == std::string::npos ? &found->second : entry_of(found->second, part.substr(bracket + 1));
    if (node == nullptr) return nullptr;
    table = node->get<TomlTable>();
  }
  return node;
}

std::string mismatch(std::string_view expected, const TomlNode& node) {
  return fmt::format("expected {}, found {}", expected, describe(node));
}

// read() stores a value of the right type that fulfils the rule, or gives the complaint.

template <std::integral T>
std::string read(const TomlNode& node, T& field, const Rule<int64_t>& rule) {
  const auto* value = node.get<int64_t>();
  if (value == nullptr) return mismatch("an integer", node);
  if (auto complaint = rule(*value); !complaint.empty()) return complaint;
  if (!std::in_range<T>(*value)) {
    return mismatch(fmt::format("an integer <= {}", std::numeric_limits<T>::max()), node);
  }
  field = static_cast<T>(*value);
  return "";
}

std::string read(const TomlNode& node, bool& field, const Rule<bool>& rule) {
  const auto* value = node.get<bool>();
  if (value == nullptr) return mismatch("true or false", node);
  field = *value;
  return rule(field);
}

std::string read(const TomlNode& node, double& field, const Rule<double>& rule) {
  if (const auto* integer = node.get<int64_t>()) {
    field = static_cast<double>(*integer);
  } else if (const auto* real = node.get<double>()) {
    field = *real;
  } else {
    return mismatch("a number", node);
  }
  return rule(field);
}

std::string read(const TomlNode& node, std::string& field, const Rule<std::string>& rule) {
  const auto* text = node.get<std::string>();
  if (text == nullptr) return mismatch("a string", node);
  field = *text;
  return rule(field);
}

std::string read(const TomlNode& node, std::optional<std::string>& field, const Rule<std::string>& rule) {
  return read(node, field.emplace(), rule);
}

constexpr std::string_view array_of(const std::string& /*item*/) { return "an array of strings"; }
constexpr std::string_view array_of(int /*item*/) { return "an array of integers"; }
constexpr std::string_view array_of(double /*item*/) { return "an array of numbers"; }

/// The items have only their type checked; the rule is for the whole.
template <class T>
std::string read(const TomlNode& node, std::vector<T>& field, const Rule<std::vector<T>>& rule) {
  const auto* array = node.get<TomlNode::Array>();
  if (array == nullptr) return mismatch(array_of(T()), node);
  field.clear();
  for (const auto& item : *array) {
    T value{};
    const auto anything = [](const auto& /*value*/) { return std::string(); };
    if (!read(item, value, {"", anything}).empty()) return mismatch(array_of(T()), item) + " in it";
    field.push_back(std::move(value));
  }
  return rule(field);
}

/// Stores the value of a key. Throws InputError where it is none for it.
template <class T, class R>
void read_value(const TomlNode& node, const std::string& key, T& field, const Rule<R>& rule) {
  const auto complaint = read(node, field, rule);
  if (!complaint.empty()) throw InputError("{}: {}: {}", node.origin.text(), key, complaint);
}

/// The same for an array of tables, which have keys of their own.
template <HasEntryKeys Entry>
void read_value(const TomlNode& node, const std::string& key, std::vector<Entry>& field,
                const Rule<std::vector<Entry>>& /*rule*/) {
  constexpr std::string_view kExpected = "an array of tables";
  const auto fail = [&](const TomlNode& at, std::string_view where) {
    throw InputError("{}: {}: {}{}", at.origin.text(), key, mismatch(kExpected, at), where);
  };
  const auto* array = node.get<TomlNode::Array>();
  if (array == nullptr) fail(node, "");
  field.clear();
  for (const auto& item : *array) {
    const auto* table = item.get<TomlTable>();
    if (table == nullptr) fail(item, " in it");
    const std::string prefix = fmt::format("{}[{}].", key, field.size());
    auto& entry = field.emplace_back();
    std::vector<std::string> keys;
    visit_entry_keys(entry,
                     [&](std::string_view name, auto&&...) { keys.push_back(prefix + std::string(name)); });
    check_names(*table, prefix, keys);
    visit_entry_keys(entry, [&](std::string_view name, auto& value, const auto& rule, std::string_view) {
      const TomlNode* found = find(*table, name);
      if (found != nullptr) read_value(*found, prefix + std::string(name), value, rule);
    });
  }
}

/// Where a key's value comes from; of a key that an entry of an array leaves out, where the entry does.
std::string origin_of(const TomlTable& root, std::string_view key) {
  const auto* node = find(root, key);
  if (node == nullptr) node = find(root, key.substr(0, key.rfind(']') + 1));
  return node == nullptr ? "default" : node->origin.text();
}

/// Where the first of two keys comes from that is not a default.
std::string origin_of(const TomlTable& root, std::string_view key, std::string_view other) {
  return origin_of(root, find(root, key) != nullptr ? key : other);
}

/// Runs a check; its complaint gets the place of the key that it begins with.
void check_with_place(const TomlTable& root, const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    const std::string complaint = error.what();
    throw InputError("{}: {}", origin_of(root, complaint.substr(0, complaint.find(':'))), complaint);
  }
}

void check_stages(const Config& config, const TomlTable& root) {
  constexpr std::string_view kKey = "pipeline.stages_per_rank";
  try {
    check_stages_per_rank(config.pipeline.schedule, {.stages = static_cast<int>(config.model.cuts.size()) + 1,
                                                     .stages_per_rank = config.pipeline.stages_per_rank});
  } catch (const InputError& error) {
    throw InputError("{}: {}: {}", origin_of(root, kKey), kKey, error.what());
  }
}

/// Every replica needs a sample for each of its micro-batches.
void check_batch(const Config& config, const TomlTable& root) {
  const auto expect_at_most = [&](int64_t most, std::string_view key, std::string_view what, int64_t found) {
    if (found <= most) return;
    throw InputError("{}: {}: expected at most {}, which is {}, found {}",
                     origin_of(root, key, "data.batch_size"), key, what, most, found);
  };
  const auto& [batch, pipeline] = std::tie(config.data.batch_size, config.pipeline);
  expect_at_most(batch, "pipeline.replicas", "data.batch_size", pipeline.replicas);
  expect_at_most(batch / pipeline.replicas, "pipeline.micro_batches",
                 pipeline.replicas == 1 ? "data.batch_size" : "data.batch_size / pipeline.replicas",
                 pipeline.micro_batches);
}

/// A network of tokens reads text, and nothing else does; and its settings go together.
void check_kinds(const Config& config, const TomlTable& root) {
  const auto& [model, data] = std::tie(config.model, config.data);
  const ModelKind& kind = model_kind(model.kind);
  if (kind.reads_tokens != is_text(data)) {
    std::vector<std::string> fitting;
    for (const auto& other : data_kinds()) {
      if (other.is_text == kind.reads_tokens) fitting.push_back(other.name);
    }
    throw InputError("{}: data.kind: expected {} for model.kind {}, found {}",
                     origin_of(root, "data.kind", "model.kind"), alternatives(fitting), toml_string(model.kind),
                     toml_string(data.kind));
  }
  const SampleForm known = is_text(data) ? data_kind(data.kind).form(data) : SampleForm();
  if (const auto complaint = kind.complaint(model.settings, known)) {
    const std::string key = "model." + complaint->key;
    throw InputError("{}: {}: {}", origin_of(root, key, "model.kind"), key, complaint->text);
  }
}

/// A run that starts from another has epochs left to train.
void check_start(const Config& config, const TomlTable& root) {
  constexpr std::string_view kKey = "compression.start_epoch";
  const auto& compression = config.compression;
  if (compression.start_from.empty() || compression.start_epoch < config.train.epochs) return;
  throw InputError(
      "{}: {}: with compression.start_from expected less than train.epochs, which is {}, found {}: nothing "
      "would be trained",
      origin_of(root, kKey, "train.epochs"), kKey, config.train.epochs, compression.start_epoch);
}

/// Some keys belong to one transport.
void check_transport(const Config& config, const TomlTable& root) {
  const auto& pipeline = config.pipeline;
  if (pipeline.transport != "c10d") return;
  const auto fail = [&](const char* key, const char* expected, const std::string& found) {
    throw InputError("{}: {}: expected {} with pipeline.transport = \"{}\", found {}", origin_of(root, key),
                     key, expected, pipeline.transport, found);
  };
  constexpr const char* kRejoin = "pipeline.rejoin";
  if (parse_seconds(pipeline.rejoin, kRejoin) != 0) fail(kRejoin, "0s", toml_string(pipeline.rejoin));
  if (pipeline.connections != 1) fail("pipeline.connections", "1", std::to_string(pipeline.connections));
}

/// Each network has a name of its own and a bandwidth, and as many times as there are stages, or none.
void check_networks(const Config& config, const TomlTable& root) {
  const auto fail = [&](const std::string& key, const std::string& complaint) {
    throw InputError("{}: {}: {}", origin_of(root, key), key, complaint);
  };
  const size_t stages = config.model.cuts.size() + 1;
  for (size_t i = 0; i < config.networks.size(); ++i) {
    const auto& network = config.networks[i];
    const std::string key = fmt::format("networks[{}]", i);
    const auto same = std::ranges::find(config.networks, network.name, &NetworkOptions::name);
    if (network.name.empty()) fail(key, "expected a name, found none");
    if (same != config.networks.begin() + static_cast<ptrdiff_t>(i)) {
      fail(key + ".name", fmt::format("expected each name once, found {} twice", toml_string(network.name)));
    }
    if (!network.stage_seconds.empty() && network.stage_seconds.size() != stages) {
      fail(key + ".stage_seconds",
           fmt::format("expected one for each of {}, found {}",
                       count_text(static_cast<int64_t>(stages), "stage"), network.stage_seconds.size()));
    }
  }
  for (size_t i = 0; i < config.networks.size(); ++i) {
    const std::string key = fmt::format("networks[{}].bandwidth", i);
    if (find(root, key) != nullptr) continue;
    fail(key, fmt::format("expected a rate such as 200Mbps, or unlimited, for network {}, found none",
                          toml_string(config.networks[i].name)));
  }
  const std::string& chosen_for = config.compression.automatic.network;
  if (!chosen_for.empty() &&
      std::ranges::find(config.networks, chosen_for, &NetworkOptions::name) == config.networks.end()) {
    std::vector<std::string> names;
    for (const auto& network : config.networks) names.push_back(network.name);
    fail("compression.auto.network", fmt::format("expected one of networks, which are {}; found {}{}",
                                                 names.empty() ? "none" : list_of(names),
                                                 toml_string(chosen_for), suggestion(chosen_for, names)));
  }
  if (!config.networks.empty() && config.pipeline.replicas != 1) {
    fail("pipeline.replicas",
         fmt::format(
             "with networks expected 1, because only the step of one pipeline can be simulated; found {}",
             config.pipeline.replicas));
  }
}

/// What lies beside the weights to start from, where their place is known: what is said of the model's keys,
/// unless the configuration has them all, and the tokenizer.
void take_published(Config& config, const TomlTable& root) {
  const auto text = [&](std::string_view key, const std::string& otherwise) {
    const TomlNode* node = find(root, key);
    const auto* value = node == nullptr ? nullptr : node->get<std::string>();
    return value == nullptr ? otherwise : *value;
  };
  const auto is_set = [&](const std::string& key) { return find(root, key) != nullptr; };
  const auto& keys = model_kind(config.model.kind).keys;
  const bool has_all = std::ranges::all_of(keys, [&](const auto& key) { return is_set("model." + key.name); });
  const bool has_tokenizer = !is_text(config.data) || is_set("data.tokenizer");
  if (has_all && has_tokenizer) return;
  const auto weights = find_initial(text("model.init", ""), text("data.root", default_data_root()));
  if (!weights) return;
  if (!has_all) take_published(config.model, *weights);
  const auto folder = weights->parent_path();
  if (!has_tokenizer && holds_tokenizer(folder)) config.data.settings.set("tokenizer", folder.string());
}

void check_together(const Config& config, const TomlTable& root) {
  check_with_place(root, [&] { check(config.compression, config.model.cuts, config.pipeline.micro_batches); });
  check_with_place(root, [&] { check_micro_batch_steps(config.train, config.pipeline); });
  check_kinds(config, root);
  check_stages(config, root);
  check_start(config, root);
  check_transport(config, root);
  check_batch(config, root);
  check_networks(config, root);
}

}  // namespace

Config read_config(const TomlTable& root) {
  Config config;
  const TomlNode environment{default_data_root(), Origin{"STRAIT_DATA", 0}};
  const auto read_key = [&](std::string_view key, auto& field, const auto& rule, std::string_view /*meaning*/) {
    const TomlNode* node = find(root, key);
    if (node == nullptr && key == "data.root") node = &environment;
    if (node == nullptr) return;
    read_value(*node, std::string(key), field, rule);
  };
  visit_kinds(config, read_key);
  set_defaults_of_kinds(config);
  check_names(root, "", keys_of(config));
  take_published(config, root);
  visit_keys(config, read_key);
  check_together(config, root);
  return config;
}

}  // namespace strait
