#include "strait/checkpoint/training_state.h"

#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/run/metrics_json.h"

namespace strait {
namespace {

/// It has all of metrics.jsonl, as text within text.
constexpr uint64_t kRecordBytesMost = 2 * kMetricsBytesMost;

using nlohmann::json;

constexpr int kFormat = 2;  // raised when an older program could not read the checkpoint

json to_json(const LayerCosines::Sums& sums) {
  return {sums.plain.between, sums.plain.within, sums.crossed.between, sums.crossed.within, sums.coded.between,
          sums.coded.within,  sums.pairs,        sums.micro_batches,   sums.is_refused};
}

json to_json(const TrainingState& state) {
  return {{"epoch", state.epoch},
          {"batches", state.batches},
          {"step", state.step},
          {"loss_sum", state.sums.loss_sum},
          {"correct", state.sums.correct},
          {"count", state.sums.count},
          {"rows", state.sums.rows},
          {"seconds", state.seconds},
          {"data_wait_seconds", state.data_wait_seconds},
          {"boundaries", to_json(state.traffic)},
          {"evaluations", to_json(state.evaluations)},
          {"evaluation_seconds", state.evaluation_seconds},
          {"stages", to_json(state.stages)},
          {"choices", to_json(state.choices)},
          {"layers", layers_to_json(state.layers)}};
}

TrainingState training_state_in(const json& json) {
  const std::string origin = kRecordFile;
  return {.epoch = json.at("epoch"),
          .batches = json.at("batches"),
          .step = json.at("step"),
          .sums = {json.at("loss_sum"), json.at("correct"), json.at("count"), json.at("rows")},
          .seconds = json.at("seconds"),
          .data_wait_seconds = json.at("data_wait_seconds"),
          .traffic = boundary_traffic_in({json.at("boundaries"), origin, "boundaries"}),
          .evaluations = json.contains("evaluations")
                             ? step_evaluations_in({json.at("evaluations"), origin, "evaluations"})
                             : std::vector<StepEvaluation>(),
          .evaluation_seconds = json.value("evaluation_seconds", 0.0),
          .stages = stage_times_of(json.at("stages")),
          .choices = json.contains("choices") ? choices_in({json.at("choices"), origin, "choices"})
                                              : std::vector<CodecChoice>(),
          .layers = json.contains("layers") ? layers_in(json.at("layers")) : SumsOfLayers()};
}

uint64_t digest(const json& content) {
  const std::string text = content.dump();
  return XXH3_64bits(text.data(), text.size());
}

/// Takes the document's own checksum out and compares it.
bool is_intact(json& content) {
  const json checksum = content.at("checksum");
  content.erase("checksum");
  return checksum == digest(content);
}

CheckpointRecord record_in(const json& content) {
  return {
      .state = training_state_in(content.at("position")),
      .place = {.rank = content.at("rank"), .ranks = content.at("ranks"), .replicas = content.at("replicas")},
      .seed = content.at("seed"),
      .config = content.at("config"),
      .data = content.value("data", ""),
      .metrics = content.at("metrics"),
      .checksums = content.at("checksums")};
}

}  // namespace

json layers_to_json(const SumsOfLayers& layers) {
  json all = json::object();
  for (const auto& [boundary, codecs] : layers) {
    for (const auto& [codec, sums] : codecs) all[boundary][codec] = to_json(sums);
  }
  return all;
}

SumsOfLayers layers_in(const json& json) {
  SumsOfLayers layers;
  for (const auto& [boundary, codecs] : json.items()) {
    for (const auto& [codec, sums] : codecs.items()) {
      layers[boundary][codec] = {.plain = {sums.at(0), sums.at(1)},
                                 .crossed = {sums.at(2), sums.at(3)},
                                 .coded = {sums.at(4), sums.at(5)},
                                 .pairs = sums.at(6),
                                 .micro_batches = sums.at(7),
                                 .is_refused = sums.at(8)};
    }
  }
  return layers;
}

void add_times(TimesOfStages& sum, const TimesOfStages& part) {
  for (const auto& [stage, times] : part) {
    StageTimes& all = sum[stage];
    all.forward_seconds += times.forward_seconds;
    all.backward_seconds += times.backward_seconds;
    all.micro_batches += times.micro_batches;
  }
}

std::vector<StageSeconds> seconds_per_micro_batch(const TimesOfStages& stages) {
  std::vector<StageSeconds> seconds;
  for (const auto& [stage, times] : stages) {
    const auto count = static_cast<double>(times.micro_batches);
    seconds.push_back({stage.second, times.forward_seconds / count, times.backward_seconds / count});
  }
  return seconds;
}

json to_json(const TimesOfStages& stages) {
  json list = json::array();
  for (const auto& [stage, times] : stages) {
    list.push_back(
        {stage.first, stage.second, times.forward_seconds, times.backward_seconds, times.micro_batches});
  }
  return list;
}

TimesOfStages stage_times_of(const json& json) {
  TimesOfStages stages;
  for (const auto& stage : json) stages[{stage.at(0), stage.at(1)}] = {stage.at(2), stage.at(3), stage.at(4)};
  return stages;
}

const Checksums& CheckpointRecord::checksums_of(const std::string& file) const {
  static const Checksums kNone;
  const auto found = checksums.find(file);
  return found == checksums.end() ? kNone : found->second;
}

void write_record(const std::filesystem::path& folder, const CheckpointRecord& record) {
  json content = {{"format", kFormat},
                  {"position", to_json(record.state)},
                  {"rank", record.place.rank},
                  {"ranks", record.place.ranks},
                  {"replicas", record.place.replicas},
                  {"seed", record.seed},
                  {"config", record.config},
                  {"data", record.data},
                  {"metrics", record.metrics},
                  {"checksums", record.checksums}};
  content["checksum"] = digest(content);
  const std::string text = content.dump() + "\n";
  if (text.size() > kRecordBytesMost) {
    throw Error("{}: would have {} bytes, and at most {} are read", (folder / kRecordFile).string(),
                text.size(), kRecordBytesMost);
  }
  replace_file(folder / kRecordFile, text);
}

CheckpointRecord read_record(const std::filesystem::path& folder) {
  const auto path = folder / kRecordFile;
  json content = parse_json(read_whole(path, kRecordBytesMost), path.string());
  try {
    if (content.at("format") != kFormat) {
      throw InputError("{}: has format {}, expected {}", path.string(), content.at("format").dump(), kFormat);
    }
    if (!is_intact(content)) throw InputError("{}: its content does not fit its checksum", path.string());
    return record_in(content);
  } catch (const json::exception&) {
    throw InputError("{}: is not the position of a checkpoint", path.string());
  }
}

}  // namespace strait
