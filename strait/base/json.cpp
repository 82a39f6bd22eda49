#include "strait/base/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "strait/base/text.h"

namespace strait {
namespace {

using nlohmann::json;

/// Builds the document from the parser's events, which come without recursion. The parser's own callback could
/// limit the depth too, but looks through all members of a parent whenever an object in it ends.
template <class Refusal>
class Builder final : public json::json_sax_t {
 public:
  explicit Builder(std::string_view name) : name_(name) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr) != nullptr; }
  bool boolean(bool value) override { return add(value) != nullptr; }
  bool number_integer(number_integer_t value) override { return add(value) != nullptr; }
  bool number_unsigned(number_unsigned_t value) override { return add(value) != nullptr; }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(value) != nullptr; }
  bool string(string_t& value) override { return add(std::move(value)) != nullptr; }
  bool binary(binary_t& value) override { return add(std::move(value)) != nullptr; }

  bool start_object(size_t /*members*/) override { return open(json::object()); }
  bool start_array(size_t /*items*/) override { return open(json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string& token, const json::exception& error) override {
    constexpr int kNumberOverflow = 406;
    if (error.id == kNumberOverflow) {
      throw Refusal("{}: the number {} is too large (at byte {})", name_, shortened(token), position);
    }
    throw Refusal("{}: is not JSON (at byte {})", name_, position);
  }

 private:
  json* add(json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    json& parent = *open_.back();
    if (parent.is_array()) return &parent.emplace_back(std::move(value));
    const auto [member, is_new] = parent.emplace(std::move(key_), std::move(value));
    if (!is_new) throw Refusal("{}: {}has the key {} twice", name_, open_path(), in_quotes(member.key()));
    return &*member;
  }

  /// Where the innermost open object is in the document, for a message.
  std::string open_path() const {
    std::string path;
    for (size_t level = 1; level < open_.size(); ++level) {
      const json& parent = *open_[level - 1];
      if (parent.is_array()) {
        path += fmt::format("[{}]", parent.size() - 1);
        continue;
      }
      const auto is_open = [&](const json& each) { return &each == open_[level]; };
      path += (path.empty() ? "" : ".") + std::find_if(parent.begin(), parent.end(), is_open).key();
    }
    return path.empty() ? "" : one_line(path) + ": ";
  }

  bool open(json value) {
    if (open_.size() == kJsonLevelsMost) {
      throw Refusal("{}: is nested deeper than {} levels", name_, kJsonLevelsMost);
    }
    open_.push_back(add(std::move(value)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view name_;
  json root_;
  std::vector<json*> open_;  ///< nothing is added beside one of these until it is closed, so none of them moves
  std::string key_;
};

}  // namespace

template <class Refusal>
json parse_json(std::string_view text, std::string_view name) {
  Builder<Refusal> builder(name);
  json::sax_parse(text, &builder);
  // The parser takes a NUL for the end of the text, whatever follows.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    throw Refusal("{}: is not JSON (at byte {})", name, nul + 1);
  }
  return builder.take();
}

template json parse_json<InputError>(std::string_view text, std::string_view name);
template json parse_json<WireError>(std::string_view text, std::string_view name);

std::string json_string(std::string_view text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace strait
