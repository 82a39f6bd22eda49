#include "cli/codec_bench.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/codec_flags.h"
#include "cli/message_check.h"
#include "cli/output.h"
#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/config/rules.h"
#include "strait/formats/safetensors.h"
#include "strait/planning/codec_bench.h"
#include "strait/planning/device_bench.h"
#include "strait/train/runtime.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;

/// The shape of `100x64x32x32`.
std::vector<int64_t> parse_shape(const std::string& text) {
  constexpr int64_t kMostElements = int64_t{1} << 31;
  std::vector<int64_t> shape;
  int64_t room = kMostElements;
  for (const auto& size : split(text, 'x')) {
    shape.push_back(parse_integer(size, fmt::format("--shape {}: each size", text), 1, room));
    room /= shape.back();
  }
  return shape;
}

/// What the codecs are timed on, made when it is needed: an input with all its copies is large.
using MakeInput = std::function<BenchInput()>;

std::vector<MakeInput> drawn_inputs(const std::vector<std::string>& shapes) {
  std::vector<MakeInput> inputs;
  for (const auto& text : shapes) {
    for (const bool relu : {false, true}) {
      inputs.emplace_back(
          [shape = parse_shape(text), relu] { return BenchInput::drawn(shape, relu, cold_distance()); });
    }
  }
  return inputs;
}

std::vector<MakeInput> inputs_of_file(const std::string& path) {
  std::vector<MakeInput> inputs;
  const TensorFile file = read_safetensors(path);
  for (const auto& [name, x] : file.tensors) {
    check_message(name, x, path);
    if (x.numel() == 0)
      throw InputError("{}: tensor {}: expected at least one element, found none", path, in_quotes(name));
    inputs.emplace_back([name = name, x = x] { return BenchInput::repeated(name, x, cold_distance()); });
  }
  if (inputs.empty()) throw InputError("{}: expected float32 tensors, found no tensors", path);
  return inputs;
}

/// The first samples of every codec in the list.
std::vector<std::string> default_codecs() {
  constexpr size_t kOfEach = 4;
  std::vector<std::string> specs;
  for (const auto& info : codec_list()) {
    const auto end = info.samples.begin() + static_cast<ptrdiff_t>(std::min(kOfEach, info.samples.size()));
    specs.insert(specs.end(), info.samples.begin(), end);
  }
  return specs;
}

bool takes(const std::string& codec, const MessageMeta& meta) {
  try {
    make_codec(codec)->payload_size(meta);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// Writes as much memory as a few tensors take and frees it, for it to be what the codecs get. glibc finds a
/// block that was freed for the next tensor of its size only after some calls.
void write_ahead(size_t tensor_bytes) {
  constexpr size_t kTensors = 32;
  constexpr size_t kMost = size_t{1} << 30;
  at::ones({static_cast<int64_t>(std::min(kTensors * tensor_bytes, kMost))}, at::kByte);
}

struct Row {
  std::string codec;
  std::string shape;
  std::string data;
  CodecRates rates;
};

std::string number(const std::optional<double>& value) { return value ? fmt::format("{:.3f}", *value) : "-"; }

template <class Value>
Json json_of(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const Row& row, const std::string& feedback) {
  const CodecRates& rates = row.rates;
  return {{"codec", row.codec},
          {"feedback", feedback},
          {"shape", row.shape},
          {"data", row.data},
          {"encode_gb_s", rates.encode_gb_s},
          {"decode_gb_s", rates.decode_gb_s},
          {"encode_memcpy_ratio", rates.encode_memcpy_ratio},
          {"decode_memcpy_ratio", rates.decode_memcpy_ratio},
          {"reference_gb_s", json_of(rates.reference_gb_s)},
          {"relative_error", rates.relative_error},
          {"bits_per_element", rates.bits.all},
          {"index_bits", json_of(rates.bits.index)},
          {"index_bound_bits", json_of(rates.bits.index_bound)}};
}

/// The rows as a table, printed as they come.
class Table {
 public:
  explicit Table(size_t width) : width_(width) {}

  void print_heading(const BenchInput& input, const std::string& shape) const {
    print(fmt::format(
        "{}, {}: {:.1f} MB, {} copies\n{:<{}} {:>11} {:>7} {:>11} {:>7} {:>14} {:>9} {:>9} {:>8} {:>8}\n",
        shape, one_line(input.data()), static_cast<double>(input.bytes()) / 1e6, input.copies(), "codec",
        width_, "encode GB/s", "/memcpy", "decode GB/s", "/memcpy", "reference GB/s", "error", "bits", "index",
        "bound"));
    flush_output();
  }

  void print_row(const Row& row) const {
    const CodecRates& rates = row.rates;
    print(fmt::format("{:<{}} {:>11.3f} {:>7.3f} {:>11.3f} {:>7.3f} {:>14} {:>9.4f} {:>9.4f} {:>8} {:>8}\n",
                      row.codec, width_, rates.encode_gb_s, rates.encode_memcpy_ratio, rates.decode_gb_s,
                      rates.decode_memcpy_ratio, number(rates.reference_gb_s), rates.relative_error,
                      rates.bits.all, number(rates.bits.index), number(rates.bits.index_bound)));
    flush_output();
  }

 private:
  size_t width_;  ///< of the first column
};

double median_memcpy(const std::vector<Row>& rows) {
  std::vector<double> rates;
  rates.reserve(rows.size());
  for (const auto& row : rows) rates.push_back(row.rates.memcpy_gb_s);
  return median(std::move(rates));
}

constexpr Repetitions kRepetitions{.warm_up = 3, .least = 3, .most = 15, .seconds = 2};

/// What `bench` gives of the codec and the input.
template <class Bench>
auto measure(const std::string& codec, const BenchInput& input, const std::string& file, const Bench& bench) {
  try {
    return bench();
  } catch (const NumericError& error) {
    // Here it is the input that is wrong, not a training run that has diverged.
    throw InputError("{}: tensor {}: codec {}: {}", file, in_quotes(input.data()), codec, error.what());
  }
}

void print_json(const std::vector<Row>& rows, const std::string& feedback) {
  Json results = Json::array();
  for (const auto& row : rows) results.push_back(json_of(row, feedback));
  print(Json{{"memcpy_gb_s", median_memcpy(rows)}, {"results", results}}.dump() + "\n");
}

/// Calls work(input, shape, codecs that take it) for each input.
template <class Work>
void for_each_input(const CodecBenchOptions& options, const Work& work) {
  const auto codecs = options.codecs.empty() ? default_codecs() : options.codecs;
  for (const auto& codec : codecs) link_of_flags(codec, options.feedback);  // before minutes of work
  const auto inputs = options.in.empty() ? drawn_inputs(options.shapes) : inputs_of_file(options.in);
  configure_runtime(options.threads);
  for (const auto& make_input : inputs) {
    BenchInput input = make_input();
    write_ahead(input.bytes());
    auto taken = codecs;
    // Where somebody has asked for it, its error is to be seen.
    if (options.codecs.empty())
      std::erase_if(taken, [&](const auto& codec) { return !takes(codec, input.meta()); });
    work(input, fmt::format("{}", fmt::join(input.meta().shape, "x")), taken);
  }
}

size_t width_of(const std::vector<std::string>& codecs) {
  size_t width = std::string_view("codec").size();
  for (const auto& codec : codecs) width = std::max(width, codec.size());
  return width;
}

int run_on_device(const CodecBenchOptions& options, c10::Device device) {
  if (options.feedback != kNoFeedback) {
    throw InputError("--feedback {}: --device times codecs alone, expected {}", options.feedback, kNoFeedback);
  }
  Json results = Json::array();
  std::vector<double> copies;
  for_each_input(options, [&](BenchInput& input, const std::string& shape, const auto& codecs) {
    const size_t width = width_of(codecs);
    if (!options.json) {
      print(fmt::format("{}, {}: {:.1f} MB on {}\n{:<{}} {:>11} {:>7} {:>11} {:>7} {:>9} {:>9}\n", shape,
                        one_line(input.data()), static_cast<double>(input.bytes()) / 1e6, device.str(), "codec",
                        width, "encode GB/s", "/copy", "decode GB/s", "/copy", "error", "bits"));
      flush_output();
    }
    for (const auto& spec : codecs) {
      const auto codec = make_codec(spec);
      const DeviceRates rates = measure(spec, input, options.in,
                                        [&] { return bench_on_device(device, *codec, input, kRepetitions); });
      copies.push_back(rates.copy_gb_s);
      results.push_back({{"codec", spec},
                         {"shape", shape},
                         {"data", input.data()},
                         {"encode_gb_s", rates.encode_gb_s},
                         {"decode_gb_s", rates.decode_gb_s},
                         {"encode_copy_ratio", rates.encode_copy_ratio},
                         {"decode_copy_ratio", rates.decode_copy_ratio},
                         {"relative_error", rates.relative_error},
                         {"bits_per_element", rates.bits}});
      if (options.json) continue;
      print(fmt::format("{:<{}} {:>11.3f} {:>7.3f} {:>11.3f} {:>7.3f} {:>9.4f} {:>9.4f}\n", spec, width,
                        rates.encode_gb_s, rates.encode_copy_ratio, rates.decode_gb_s, rates.decode_copy_ratio,
                        rates.relative_error, rates.bits));
      flush_output();
    }
  });
  const double copy = copies.empty() ? 0 : median(copies);
  if (options.json) {
    print(Json{{"device", device.str()}, {"copy_gb_s", copy}, {"results", results}}.dump() + "\n");
  } else {
    print(fmt::format("copy {:.3f} GB/s, the median of all rows\n", copy));
  }
  return 0;
}

c10::Device device_of_flag(const std::string& name) {
  if (const std::string wrong = device_name()(name); !wrong.empty())
    throw InputError("--device {}: {}", name, wrong);
  return device_of(name, "--device");
}

}  // namespace

int run_codec_bench(const CodecBenchOptions& options) {
  if (const auto device = device_of_flag(options.device); !device.is_cpu())
    return run_on_device(options, device);
  std::vector<Row> rows;
  for_each_input(options, [&](BenchInput& input, const std::string& shape, const auto& codecs) {
    const Table table(width_of(codecs));
    if (!options.json) table.print_heading(input, shape);
    for (const auto& codec : codecs) {
      const auto bench = [&] { return bench_codec({codec, options.feedback}, input, kRepetitions); };
      rows.push_back({codec, shape, input.data(), measure(codec, input, options.in, bench)});
      if (!options.json) table.print_row(rows.back());
    }
  });
  if (options.json) {
    print_json(rows, options.feedback);
  } else {
    print(fmt::format("memcpy {:.3f} GB/s, the median of all rows\n", median_memcpy(rows)));
  }
  return 0;
}

}  // namespace strait::cli
