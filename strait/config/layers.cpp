#include "strait/config/layers.h"

#include <algorithm>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/text.h"

namespace strait {
namespace {

/// More parts than any key has; the cost of a hostile one stays small.
constexpr size_t kMaxKeyParts = 16;

/// `open` holds the files whose bases are being read, so that a file below itself is found.
TomlTable load_onto(const std::filesystem::path& path, std::vector<std::filesystem::path>& open) {
  TomlTable table = read_toml(path);
  const auto entry = table.extract("base");
  if (entry.empty()) return table;
  const TomlNode& node = entry.mapped();
  const std::string* name = node.get<std::string>();
  if (name == nullptr || name->empty() || name->find('\0') != std::string::npos) {
    throw InputError("{}: base: expected the name of a file, found {}", node.origin.text(), describe(node));
  }
  const auto base = (path.parent_path() / *name).lexically_normal();
  if (!is_there(base)) {
    throw InputError("{}: base: there is no file {}", node.origin.text(), base.string());
  }
  open.push_back(std::filesystem::canonical(path));
  if (std::ranges::find(open, std::filesystem::canonical(base)) != open.end()) {
    throw InputError("{}: base: {} leads back to itself", node.origin.text(), toml_string(*name));
  }
  TomlTable merged = load_onto(base, open);
  merge(merged, std::move(table));
  return merged;
}

}  // namespace

TomlTable load_layers(const std::filesystem::path& path) {
  std::vector<std::filesystem::path> open;
  return load_onto(path, open);
}

void apply_override(TomlTable& root, const std::string& assignment) {
  const Origin origin{"--set " + assignment, 0};
  const size_t equals = assignment.find('=');
  const auto keys = split(std::string_view(assignment).substr(0, equals), '.');
  if (equals == std::string::npos || keys.size() > kMaxKeyParts ||
      std::ranges::any_of(keys, &std::string::empty)) {
    throw InputError("{}: expected key=value, for example train.epochs=3", origin.text());
  }
  if (keys.size() == 1 && keys.front() == "base") {
    throw InputError("{}: base: a file can have a base, a flag cannot set one", origin.text());
  }
  TomlNode node = parse_toml_value(std::string_view(assignment).substr(equals + 1), origin);
  for (size_t i = keys.size(); i-- > 1;) {
    TomlTable table;
    table.emplace(keys[i], std::move(node));
    node = TomlNode{std::move(table), origin};
  }
  TomlTable layer;
  layer.emplace(keys.front(), std::move(node));
  merge(root, std::move(layer));
}

}  // namespace strait
