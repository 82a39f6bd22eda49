#include "cli/plan_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "strait/base/units.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;

double rate_of(const PlanReport& report, double step_seconds) {
  return static_cast<double>(report.config.data.batch_size) / step_seconds;
}

/// The links that a prediction is for.
std::string name_of(const PlanReport& report, const LinkPrediction& prediction) {
  const std::string& file = report.measured_links.file;
  return file.empty() ? link_rate_text(prediction.link) : "the links of " + file;
}

/// The largest part of a step with its share.
std::string bound_of(const TimeShares& shares) {
  const double parts[] = {shares.compute, shares.bubble, shares.codec, shares.wire, shares.latency};
  const double share = shares.total() > 0 ? std::ranges::max(parts) / shares.total() : 0;
  return fmt::format("{} {:.0f}%", shares.largest(), 100 * share);
}

/// Whether compression is worth it on that link.
std::string verdict(const PlanReport& report, const LinkPrediction& prediction) {
  if (report.ranks == 1) return "nothing crosses a link: all stages are in one process";
  const std::string link = name_of(report, prediction);
  const CandidateStep& fastest = prediction.fastest();
  if (prediction.compression_pays()) {
    return fmt::format("compression is worth it over {}: {} has {:.2f} times the rate of none", link,
                       fastest.candidate, prediction.none().seconds / fastest.seconds);
  }
  return fmt::format("compression is not worth it over {}: none is {}", link,
                     prediction.best == 0 ? "the fastest" : "within 2% of the best");
}

size_t name_width(const PlanReport& report) {
  size_t width = std::string_view("codec").size();
  for (const auto& candidate : report.measurement.candidates) {
    width = std::max(width, candidate.candidate.name.size());
  }
  return width;
}

std::string table_of(const PlanReport& report, const LinkPrediction& prediction) {
  const size_t width = name_width(report);
  const std::string_view own_mark = chooses_codecs(report.config.compression)
                                        ? "  <- the strongest that auto may choose"
                                        : "  <- the configuration";
  std::string table =
      fmt::format("\nover {}\n  {:<{}}  {:>9} {:>10} {:>7} {:>9}  {}\n", name_of(report, prediction), "codec",
                  width, "step", "samples/s", "ratio", "speed-up", "bound by");
  for (size_t i = 0; i < prediction.steps.size(); ++i) {
    const CandidateStep& step = prediction.steps[i];
    table += fmt::format("{} {:<{}}  {:>9} {:>10.1f} {:>6.1f}x {:>8.2f}x  {}{}\n",
                         i == prediction.best ? '*' : ' ', step.candidate, width, duration_text(step.seconds),
                         rate_of(report, step.seconds), step.ratio, prediction.none().seconds / step.seconds,
                         bound_of(step.shares), step.own ? own_mark : "");
  }
  return table + verdict(report, prediction) + "\n";
}

/// Whether the schedule holds old or predicted weights beside the newest.
bool has_versions(const PlanReport& report) { return std::ranges::max(report.weight_versions) > 1; }

/// `3 x 1.2 MB`.
std::string weights_of(const PlanReport& report, size_t stage) {
  return fmt::format("{} x {:.1f} MB", report.weight_versions[stage],
                     report.measurement.weight_bytes[stage] / 1e6);
}

std::string stages_table(const PlanReport& report) {
  size_t width = std::string_view("stage").size();
  for (const auto& stage : report.measurement.stages) width = std::max(width, stage.name.size());
  const bool versions = has_versions(report);
  std::string table = fmt::format("  {:<{}}  {:>9} {:>9}{}\n", "stage", width, "forward", "backward",
                                  versions ? fmt::format(" {:>14}", "weights") : "");
  for (size_t i = 0; i < report.measurement.stages.size(); ++i) {
    const StageSeconds& stage = report.measurement.stages[i];
    table += fmt::format("  {:<{}}  {:>9} {:>9}{}\n", stage.name, width, duration_text(stage.forward),
                         duration_text(stage.backward),
                         versions ? fmt::format(" {:>14}", weights_of(report, i)) : "");
    if (report.assumed_stages && !versions) break;  // they are all the same
  }
  return table;
}

/// The rates of each boundary that was measured.
std::string boundaries_table(const MeasuredLinks& links) {
  if (links.boundaries.empty()) return "";
  size_t width = std::string_view("boundary").size();
  for (const auto& boundary : links.boundaries) width = std::max(width, boundary.place.name.size());
  std::string table = fmt::format("\n  {:<{}}  {:<9}  {:>11}  {:>11}  {:>9}\n", "boundary", width, "ranks",
                                  "activations", "gradients", "latency");
  for (const auto& [place, route, link] : links.boundaries) {
    table += fmt::format(
        "  {:<{}}  {:<9}  {:>11}  {:>11}  {:>9}{}\n", place.name, width,
        fmt::format("{} - {}", place.before, place.behind), bandwidth_text(link.activations.bytes_per_second),
        bandwidth_text(link.gradients.bytes_per_second), duration_text(link.activations.latency_seconds),
        route == Route::relayed ? "  through rank 0" : "");
  }
  return table;
}

std::string heading(const PlanReport& report) {
  const MicroBatches parts = micro_batches_of(report.config);
  std::string text =
      fmt::format("{}: {} in {}, schedule {}, {} of {}\n", report.config.name,
                  count_text(std::ssize(report.measurement.stages), "stage"),
                  count_text(static_cast<int64_t>(report.ranks), "process"), report.config.pipeline.schedule,
                  count_text(parts.count, "micro-batch"), count_text(parts.rows, "sample"));
  if (report.assumed_stages) {
    text += "assumed: stages of equal cost, and at every boundary the mean of those that there are\n";
  }
  return text;
}

std::string comparison(const PlanReport& report) {
  const double measured = report.run->step_seconds;
  std::string text = fmt::format("\nmeasured in {}: {} per step, {:.1f} samples/s\n", report.run->folder,
                                 duration_text(measured), rate_of(report, measured));
  for (size_t i = 0; i < report.links.size(); ++i) {
    const double predicted = report.own_step(i).seconds;
    const double ideal = report.ideal_seconds[i];
    text += fmt::format("over {}: predicted {} ({:+.1f}%), ideal {}, of whose rate the run has {:.1f}%\n",
                        name_of(report, report.links[i]), duration_text(predicted),
                        100 * (predicted / measured - 1), duration_text(ideal), 100 * ideal / measured);
  }
  return text;
}

Json messages_json(const std::vector<MessageCost>& messages) {
  Json list = Json::array();
  for (const auto& message : messages) {
    list.push_back({{"bytes", message.bytes},
                    {"encode_seconds", message.encode_seconds},
                    {"decode_seconds", message.decode_seconds}});
  }
  return list;
}

Json measurement_json(const PlanReport& report) {
  const Measurement& measurement = report.measurement;
  Json stages = Json::array();
  for (size_t i = 0; i < measurement.stages.size(); ++i) {
    const StageSeconds& stage = measurement.stages[i];
    stages.push_back({{"name", stage.name},
                      {"forward_seconds", stage.forward},
                      {"backward_seconds", stage.backward},
                      {"weight_versions", report.weight_versions[i]},
                      {"weight_bytes", measurement.weight_bytes[i]}});
  }
  Json candidates = Json::array();
  for (const auto& costs : measurement.candidates) {
    candidates.push_back({{"codec", costs.candidate.name},
                          {"own", costs.candidate.own},
                          {"ratio", costs.ratio},
                          {"activations", messages_json(costs.activation)},
                          {"gradients", messages_json(costs.gradient)}});
  }
  return {{"stages", stages}, {"codecs", candidates}};
}

Json step_json(const PlanReport& report, const LinkPrediction& prediction, const CandidateStep& step) {
  const TimeShares& shares = step.shares;
  return {{"codec", step.candidate},
          {"own", step.own},
          {"step_seconds", step.seconds},
          {"samples_per_second", rate_of(report, step.seconds)},
          {"ratio", step.ratio},
          {"speedup", prediction.none().seconds / step.seconds},
          {"bound", shares.largest()},
          {"seconds_by",
           {{"compute", shares.compute},
            {"bubble", shares.bubble},
            {"codec", shares.codec},
            {"wire", shares.wire},
            {"latency", shares.latency}}}};
}

/// Bits per second; null where there is no limit.
Json rate_json(double bytes_per_second) {
  return std::isinf(bytes_per_second) ? Json() : Json(8 * bytes_per_second);
}

Json boundaries_json(const MeasuredLinks& links) {
  Json list = Json::array();
  for (const auto& [place, route, link] : links.boundaries) {
    list.push_back({{"name", place.name},
                    {"activation_bits_per_second", rate_json(link.activations.bytes_per_second)},
                    {"gradient_bits_per_second", rate_json(link.gradients.bytes_per_second)},
                    {"latency_seconds", link.activations.latency_seconds}});
  }
  return list;
}

Json link_json(const PlanReport& report, size_t index) {
  const LinkPrediction& prediction = report.links[index];
  const double rate = prediction.link.bytes_per_second;
  const auto& measured = report.measured_links;
  Json rows = Json::array();
  for (const auto& step : prediction.steps) rows.push_back(step_json(report, prediction, step));
  return {{"bandwidth_bits_per_second", rate_json(rate)},
          {"latency_seconds", measured.file.empty() ? Json(prediction.link.latency_seconds) : Json()},
          {"links_file", measured.file.empty() ? Json() : Json(measured.file)},
          {"boundaries", boundaries_json(measured)},
          {"rows", rows},
          {"best", prediction.fastest().candidate},
          {"compression_pays", report.ranks > 1 && prediction.compression_pays()},
          {"verdict", verdict(report, prediction)},
          {"predicted_step_seconds", report.own_step(index).seconds},
          {"ideal_step_seconds", report.ideal_seconds[index]}};
}

}  // namespace

std::vector<BoundaryLink> MeasuredLinks::links() const {
  std::vector<BoundaryLink> all;
  for (const auto& boundary : boundaries) all.push_back(boundary.link);
  return all;
}

const CandidateStep& PlanReport::own_step(size_t link) const {
  return *std::ranges::find_if(links[link].steps, &CandidateStep::own);
}

std::string plan_text(const PlanReport& report) {
  std::string text = heading(report) + stages_table(report) + boundaries_table(report.measured_links);
  for (const auto& prediction : report.links) text += table_of(report, prediction);
  if (report.run) text += comparison(report);
  return text + "\nAccuracy is not in this table: only training shows what a codec costs there.\n";
}

std::string plan_json(const PlanReport& report) {
  const MicroBatches parts = micro_batches_of(report.config);
  Json json = {{"name", report.config.name},
               {"config_hash", config_hash(report.config)},
               {"schedule", report.config.pipeline.schedule},
               {"micro_batches", parts.count},
               {"micro_batch_rows", parts.rows},
               {"stages", report.measurement.stages.size()},
               {"processes", report.ranks},
               {"equal_stages_assumed", report.assumed_stages.has_value()},
               {"measurement", measurement_json(report)},
               {"links", Json::array()}};
  for (size_t i = 0; i < report.links.size(); ++i) json["links"].push_back(link_json(report, i));
  if (report.run) {
    const double measured = report.run->step_seconds;
    json["measured_in"] = report.run->folder;
    json["measured_step_seconds"] = measured;
    if (report.links.size() == 1) {
      const double predicted = report.own_step(0).seconds;
      json["predicted_step_seconds"] = predicted;
      json["ideal_step_seconds"] = report.ideal_seconds[0];
      json["share_of_ideal"] = report.ideal_seconds[0] / measured;
      json["prediction_error"] = predicted / measured - 1;
    }
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strait::cli
