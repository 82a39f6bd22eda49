#include "cli/codec_apply.h"

#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "strait/base/error.h"
#include "strait/boundary/channel.h"
#include "strait/train/safetensors.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;
struct Delivery {
  at::Tensor received;
  Traffic traffic;
};

/// Both ends of one direction of a boundary. They share nothing but the bytes of a frame.
class Wire {
 public:
  Wire(const std::string& codec, const std::string& feedback)
      : sender_(spec(codec, feedback)), receiver_(spec(codec, feedback)) {}

  Delivery send(const at::Tensor& x) {
    const MessageContext context{.step = step_++};
    Delivery delivery;
    Buffer frame = sender_.encode(x, context, {});
    delivery.received = receiver_.decode(std::move(frame), meta_of(x), context, {});
    delivery.traffic = sender_.take_traffic();
    delivery.traffic += receiver_.take_traffic();
    return delivery;
  }

 private:
  static ChannelSpec spec(const std::string& codec, const std::string& feedback) {
    return {.boundary_name = "of codec apply", .link = make_link(feedback, make_codec(codec))};
  }

  Sender sender_;
  Receiver receiver_;
  uint64_t step_ = 0;
};

/// What one message, or all together, cost.
struct Cost {
  std::string name;
  size_t raw_bytes = 0;
  size_t wire_bytes = 0;
  double squared_norm = 0;
  double squared_error = 0;
  double max_abs_error = 0;
  double encode_seconds = 0;
  double decode_seconds = 0;

  double ratio() const { return static_cast<double>(raw_bytes) / static_cast<double>(wire_bytes); }

  /// Infinite for a message of zeros that arrives as something else.
  double relative_error() const {
    return squared_error == 0 ? 0 : std::sqrt(squared_error) / std::sqrt(squared_norm);
  }

  void add(const Cost& other) {
    raw_bytes += other.raw_bytes;
    wire_bytes += other.wire_bytes;
    squared_norm += other.squared_norm;
    squared_error += other.squared_error;
    max_abs_error = std::max(max_abs_error, other.max_abs_error);
    encode_seconds += other.encode_seconds;
    decode_seconds += other.decode_seconds;
  }
};

Cost cost_of(const std::string& name, const at::Tensor& sent, const Delivery& delivery) {
  Cost cost{.name = name,
            .raw_bytes = sent.nbytes(),
            .wire_bytes = delivery.traffic.wire_bytes,
            .encode_seconds = delivery.traffic.encode_seconds,
            .decode_seconds = delivery.traffic.decode_seconds};
  const at::Tensor x = sent.contiguous();
  const at::Tensor y = delivery.received.contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double value = x.data_ptr<float>()[i];
    const double error = value - y.data_ptr<float>()[i];
    cost.squared_norm += value * value;
    cost.squared_error += error * error;
    cost.max_abs_error = std::max(cost.max_abs_error, std::abs(error));
  }
  return cost;
}

std::string type_name(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kFloat:
      return "float32";
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    default:
      return at::toString(tensor.scalar_type());
  }
}

/// Checks that the file holds nothing but messages and gives them in their order. Sample ids (`ids.N`) are
/// for feedback that keeps a buffer a sample; no other has a use for them.
std::vector<at::Tensor> messages_of(const TensorFile& file, const std::string& path) {
  if (file.tensors.empty()) throw InputError("{}: expected a tensor \"0\", found no tensors", path);
  const auto is_ids = [](const auto& entry) { return entry.first.starts_with("ids."); };
  const auto others = static_cast<size_t>(std::ranges::count_if(file.tensors, is_ids));
  std::vector<at::Tensor> messages(file.tensors.size() - others);
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with("ids.")) continue;
    size_t position = 0;
    while (position < messages.size() && std::to_string(position) != name) ++position;
    if (position == messages.size()) {
      throw InputError("{}: tensor \"{}\": expected {} messages named \"0\" to \"{}\"", path, name,
                       messages.size(), messages.size() - 1);
    }
    if (tensor.scalar_type() != at::kFloat) {
      throw InputError("{}: tensor \"{}\": expected float32, found {}", path, name, type_name(tensor));
    }
    if (tensor.dim() == 0) {
      throw InputError("{}: tensor \"{}\": expected at least one dimension, found a scalar", path, name);
    }
    messages[position] = tensor;
  }
  return messages;
}

Json json_of(const Cost& cost) {
  Json json;
  if (!cost.name.empty()) json["name"] = cost.name;
  json["raw_bytes"] = cost.raw_bytes;
  json["wire_bytes"] = cost.wire_bytes;
  json["ratio"] = cost.ratio();
  json["relative_error"] = cost.relative_error();
  json["max_abs_error"] = cost.max_abs_error;
  json["encode_seconds"] = cost.encode_seconds;
  json["decode_seconds"] = cost.decode_seconds;
  return json;
}

std::string row_of(const Cost& cost) {
  return fmt::format("{:<8} {:>12} {:>12} {:>8.3f} {:>14.6g} {:>14.6g} {:>11.6f} {:>11.6f}\n",
                     cost.name.empty() ? "total" : cost.name, cost.raw_bytes, cost.wire_bytes, cost.ratio(),
                     cost.relative_error(), cost.max_abs_error, cost.encode_seconds, cost.decode_seconds);
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
  Wire wire(options.codec, options.feedback);
  const auto messages = messages_of(read_safetensors(options.in), options.in);
  TensorFile received;
  std::vector<Cost> costs;
  Cost total;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string name = std::to_string(i);
    try {
      const Delivery delivery = wire.send(messages[i]);
      received.tensors.emplace_back(name, delivery.received);
      costs.push_back(cost_of(name, messages[i], delivery));
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
