#include "tests/report/sample_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/support/temp_dir.h"

namespace strait::test {
namespace {

using nlohmann::json;

/// How a variant of the sample behaves.
struct Behaviour {
  std::string name;
  double off;  ///< accuracies that it tends to, percent
  double on;
  double loss;
  double ratio_down;
  double ratio_back;
  std::string paper;
};

const std::vector<Behaviour>& behaviours() {
  static const std::vector<Behaviour> all = {
      {"none", 92.8, 92.8, 0.02, 1, 1, R"({"off": 93.00, "on": 93.00})"},
      {"fw4-bw8", 92.7, 92.5, 0.03, 8, 4, R"({"off": 93.10, "on": 92.95})"},
      {"fw4-bw4", 83.0, 82.4, 0.35, 8, 8, R"({"off": 83.39, "on": 82.66})"},
      {"fw2-bw8", 76.5, 91.8, 0.08, 16, 4, R"({"off": 77.09, "on": 92.05})"},
      {"topk-10", 75.0, 91.5, 0.10, 8.6, 8.6, R"({"off": 75.89, "on": 91.87})"},
      {"fw4-bw2", 64.0, 63.5, 0.85, 8, 16, ""},
  };
  return all;
}

/// A number of [-1, 1) that depends on nothing but where it is used.
double wobble(uint64_t seed, uint64_t variant, uint64_t epoch, uint64_t what) {
  const double turns =
      std::sin(static_cast<double>(seed * 7919 + variant * 104729 + epoch * 1299709 + what * 15485863));
  return turns * 43758.5453 - std::floor(turns * 43758.5453) < 0.5 ? turns : -turns * 0.7;
}

json traffic(double elements, double ratio, json diagnostics) {
  json result = {
      {"messages", 500}, {"raw_bytes", 4 * elements * 500}, {"wire_bytes", 4 * elements * 500 / ratio}};
  if (!diagnostics.is_null()) result["diagnostics"] = std::move(diagnostics);
  return result;
}

json diagnostics(double ratio, int epoch, double wobbling) {
  const double spread = 1 + 0.4 * std::exp(-epoch / 6.0) + 0.03 * wobbling;
  return {
      {"messages", 16},
      {"zeros", 0.45 + 0.1 * (1 - std::exp(-epoch / 5.0)) + 0.01 * wobbling},
      {"quantiles", {{"0.5", 0.1 * spread}, {"0.9", 0.8 * spread}, {"0.99", 2.1 * spread}, {"1", 9 * spread}}},
      {"relative_error", ratio == 1 ? 0.0 : 0.02 * ratio * spread},
      {"cosine", epoch == 0 ? json() : json(0.2 + 0.02 * wobbling)},
      {"residual_norm", nullptr}};
}

json epoch_json(const Behaviour& variant, uint64_t index, uint64_t seed, int epoch) {
  const double learnt = 1 - std::exp(-(epoch + 1) / 4.0);
  const auto shake = [&](uint64_t what) { return wobble(seed, index, static_cast<uint64_t>(epoch), what); };
  json boundaries = json::array();
  double elements = 100 * 64 * 32 * 32;
  double place = 0;
  for (const char* name : {"layer1", "layer2", "layer3"}) {
    boundaries.push_back({{"name", name},
                          {"activations", traffic(elements, variant.ratio_down,
                                                  diagnostics(variant.ratio_down, epoch, shake(4) + place))},
                          {"gradients", traffic(elements, variant.ratio_back,
                                                diagnostics(variant.ratio_back, epoch, shake(5) + place))}});
    elements /= 2;
    place += 3;
  }
  const double off = 10 + (variant.off - 10) * learnt + 2.5 * shake(1) * (1.2 - learnt);
  const double on = 10 + (variant.on - 10) * learnt + 1.5 * shake(2) * (1.2 - learnt);
  return {{"epoch", epoch},
          {"steps", 500},
          {"train_loss", variant.loss + (2.3 - variant.loss) * std::exp(-(epoch + 1) / 3.5) + 0.03 * shake(3)},
          {"test",
           {{"off", {{"loss", 3 - off / 40}, {"accuracy", off}}},
            {"on", {{"loss", 3 - on / 40}, {"accuracy", on}}}}},
          {"seconds", 25.5},
          {"evaluation_seconds", 4.25},
          {"boundaries", boundaries}};
}

std::string lines_of(const Behaviour& variant, uint64_t index, uint64_t seed, int epochs) {
  std::string lines;
  for (int epoch = 0; epoch < epochs; ++epoch) lines += epoch_json(variant, index, seed, epoch).dump() + "\n";
  return lines;
}

}  // namespace

std::string epoch_line(int epoch, double train_loss, double off, double on) {
  const json line = {{"epoch", epoch},
                     {"steps", 2},
                     {"train_loss", train_loss},
                     {"test", {{"off", {{"accuracy", off}}}, {"on", {{"accuracy", on}}}}},
                     {"seconds", 3.5},
                     {"evaluation_seconds", 0.5},
                     {"boundaries",
                      {{{"name", "layer1"},
                        {"activations", {{"raw_bytes", 8000}, {"wire_bytes", 1000}}},
                        {"gradients", {{"raw_bytes", 8000}, {"wire_bytes", 2000}}}}}}};
  return line.dump() + "\n";
}

void write_run(const std::filesystem::path& folder, const std::string& name, uint64_t seed,
               const std::string& status, const std::string& lines) {
  std::filesystem::create_directories(folder);
  const json content = {{"status", status},
                        {"name", name},
                        {"seed", seed},
                        {"config_hash", "hash-" + name + fmt::format("-{}", seed)},
                        {"code_version", "0.1.0+0123456789ab"},
                        {"machine", "Example CPU, 8 threads, LibTorch 1.13.1"},
                        {"epochs", 20},
                        {"updated", 1.8e9 + 3600.0 * static_cast<double>(seed)}};
  write_file(folder / "status.json", content.dump());
  write_file(folder / "config.toml",
             fmt::format("name = \"{}\"\nseed = {}\n\n[train]\nepochs = 20\n", name, seed));
  write_file(folder / "metrics.jsonl", lines);
}

std::string sweep_entry(const std::string& variant, uint64_t seed, const std::string& status,
                        const std::string& paper) {
  const std::string name = fmt::format("{}-seed{}", variant, seed);
  json entry = {{"variant", variant},
                {"seed", seed},
                {"folder", name},
                {"status", status},
                {"config_hash", fmt::format("hash-{}-{}", name, seed)}};
  if (!paper.empty()) entry["paper"] = json::parse(paper);
  return entry.dump();
}

void write_sample_sweep(const std::filesystem::path& folder) {
  std::vector<std::string> entries;
  for (size_t index = 0; index < behaviours().size(); ++index) {
    const Behaviour& variant = behaviours()[index];
    for (uint64_t seed = 0; seed < 3; ++seed) {
      const bool last = index + 1 == behaviours().size();
      const std::string status = !last || seed == 0 ? "done" : seed == 1 ? "diverged" : "running";
      const int epochs = status == "done" ? 20 : 9;
      const std::string name = fmt::format("{}-seed{}", variant.name, seed);
      write_run(folder / name, name, seed, status, lines_of(variant, index, seed, epochs));
      entries.push_back(sweep_entry(variant.name, seed, status, variant.paper));
    }
  }
  write_file(folder / "sweep.json",
             fmt::format(R"({{"name": "table1", "title": "Quantisation and TopK", "runs": [{}]}})",
                         fmt::join(entries, ",")));
}

}  // namespace strait::test
