#include "cli/codec_apply.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/codec_flags.h"
#include "cli/message_check.h"
#include "cli/output.h"
#include "cli/output_file.h"
#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/boundary/channel_endpoints.h"
#include "strait/codecs/error_statistics.h"
#include "strait/formats/safetensors.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;

/// One message to send.
struct Message {
  at::Tensor x;
  std::vector<int64_t> ids;  ///< of its samples; empty where the file has none
};

/// What one message, or all together, cost.
struct Cost {
  std::string name;
  Traffic traffic;
  ErrorStatistics error;

  void add(const Cost& other) {
    traffic += other.traffic;
    error += other.error;
  }
};

/// The message's position that a tensor is named for: `N` or, with the prefix, `ids.N`.
size_t position_of(const std::string& name, const std::string& prefix, size_t messages,
                   const std::string& path) {
  const std::string text = name.substr(prefix.size());
  const auto position = parse_number<size_t>(text);
  const bool is_number = position && (text == "0" || !text.starts_with('0'));
  if (is_number && *position < messages) return *position;
  throw InputError("{}: expected tensors named \"{}0\", \"{}1\", ... without a gap; found {}{}", path, prefix,
                   prefix, in_quotes(name), is_number ? fmt::format(" of {} messages", messages) : "");
}

std::vector<int64_t> ids_of(const std::string& name, const at::Tensor& ids, const at::Tensor& x,
                            const std::string& path) {
  if (ids.scalar_type() != at::kLong || ids.dim() != 1 || ids.size(0) != x.size(0)) {
    throw InputError(
        "{}: tensor \"{}\": expected int64 of length {}, found {} of {} dimensions and {} elements", path, name,
        x.size(0), type_name(ids), ids.dim(), ids.numel());
  }
  return {ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel()};
}

/// The messages in their order with their sample ids. Checks that the file holds nothing else, and that the
/// ids are there when they are needed.
std::vector<Message> messages_of(const TensorFile& file, const std::string& path, bool needs_ids) {
  const std::string prefix = "ids.";
  if (file.tensors.empty()) throw InputError("{}: expected a tensor \"0\", found no tensors", path);
  const auto is_ids = [&](const auto& entry) { return entry.first.starts_with(prefix); };
  const auto others = static_cast<size_t>(std::ranges::count_if(file.tensors, is_ids));
  std::vector<Message> messages(file.tensors.size() - others);
  for (const auto& entry : file.tensors) {
    if (is_ids(entry)) continue;
    check_message(entry.first, entry.second, path);
    messages[position_of(entry.first, "", messages.size(), path)].x = entry.second;
  }
  for (const auto& entry : file.tensors) {
    if (!is_ids(entry)) continue;
    Message& message = messages[position_of(entry.first, prefix, messages.size(), path)];
    message.ids = ids_of(entry.first, entry.second, message.x, path);
  }
  for (size_t i = 0; needs_ids && i < messages.size(); ++i) {
    if (messages[i].ids.size() == static_cast<size_t>(messages[i].x.size(0))) continue;
    throw InputError(
        "{}: tensor \"ids.{}\": expected int64 of length {}, the samples of message {}, found none", path, i,
        messages[i].x.size(0), i);
  }
  return messages;
}

Json json_of(const Cost& cost) {
  Json json;
  if (!cost.name.empty()) json["name"] = cost.name;
  json["raw_bytes"] = cost.traffic.raw_bytes;
  json["wire_bytes"] = cost.traffic.wire_bytes;
  json["ratio"] = cost.traffic.ratio();
  json["relative_error"] = cost.error.relative_error();
  json["max_abs_error"] = cost.error.max_abs_error();
  json["encode_seconds"] = cost.traffic.encode_seconds;
  json["decode_seconds"] = cost.traffic.decode_seconds;
  return json;
}

std::string row_of(const Cost& cost) {
  const Traffic& traffic = cost.traffic;
  return fmt::format("{:<8} {:>12} {:>12} {:>8.3f} {:>14.6g} {:>14.6g} {:>11.6f} {:>11.6f}\n",
                     cost.name.empty() ? "total" : cost.name, traffic.raw_bytes, traffic.wire_bytes,
                     traffic.ratio(), cost.error.relative_error(), cost.error.max_abs_error(),
                     traffic.encode_seconds, traffic.decode_seconds);
}

std::string report(const std::vector<Cost>& costs, const Cost& total, bool json) {
  if (json) {
    Json messages = Json::array();
    for (const auto& cost : costs) messages.push_back(json_of(cost));
    return Json{{"messages", messages}, {"total", json_of(total)}}.dump() + "\n";
  }
  std::string table =
      fmt::format("{:<8} {:>12} {:>12} {:>8} {:>14} {:>14} {:>11} {:>11}\n", "message", "raw bytes",
                  "wire bytes", "ratio", "relative error", "max abs error", "encode s", "decode s");
  for (const auto& cost : costs) table += row_of(cost);
  return table + row_of(total);
}

}  // namespace

int run_codec_apply(const CodecApplyOptions& options) {
  check_not_input("--out", options.out, options.in);
  check_output_file("--out", options.out);
  ChannelEndpoints channel(
      {.boundary_name = "of codec apply", .link = link_of_flags(options.codec, options.feedback)});
  expect_no_previous(fmt::format("--feedback \"{}\"", options.feedback), *channel.link);
  const bool needs_ids = channel.link->slots() == Slots::samples;
  if (channel.link->slots() == Slots::classes) {
    throw InputError("--feedback \"{}\": expected state of rows or samples; a file of messages has no classes",
                     options.feedback);
  }
  const auto messages = messages_of(read_safetensors(options.in), options.in, needs_ids);
  TensorFile received;
  std::vector<Cost> costs;
  Cost total;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string name = std::to_string(i);
    try {
      const at::Tensor seen = channel.cross(messages[i].x, {.step = i, .ids = messages[i].ids});
      received.tensors.emplace_back(name, seen);
      costs.push_back({name, channel.take_traffic(), {messages[i].x, seen}});
    } catch (const NumericError& error) {
      // Here it is the input that is wrong, not a training run that has diverged.
      throw InputError("{}: tensor \"{}\": {}", options.in, name, error.what());
    }
    total.add(costs.back());
  }
  write_safetensors(options.out, received);
  print(report(costs, total, options.json));
  return 0;
}

}  // namespace strait::cli
