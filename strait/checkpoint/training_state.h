#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "strait/boundary/layer_cosines.h"
#include "strait/pipeline/executor.h"
#include "strait/run/metrics.h"
#include "strait/transport/group_part.h"

namespace strait {

/// By a stage's number and name: those of other cuts, before a resume, are other stages.
using TimesOfStages = std::map<std::pair<int, std::string>, StageTimes>;

/// By boundary and codec: what gradients have said of codecs to choose from.
using SumsOfLayers = std::map<std::string, std::map<std::string, LayerCosines::Sums>>;

/// An object per boundary, an array per codec.
nlohmann::json layers_to_json(const SumsOfLayers& layers);

/// The inverse. Throws nlohmann::json::exception for anything else.
SumsOfLayers layers_in(const nlohmann::json& json);

/// Adds up stage by stage.
void add_times(TimesOfStages& sum, const TimesOfStages& part);

/// Of each stage the mean over its micro-batches, in order.
std::vector<StageSeconds> seconds_per_micro_batch(const TimesOfStages& stages);

/// An array, an object per stage.
nlohmann::json to_json(const TimesOfStages& stages);

/// The inverse. Throws nlohmann::json::exception for anything else.
TimesOfStages stage_times_of(const nlohmann::json& json);

/// Where a training stands, always between two steps of the optimizer. Every random draw after initialisation
/// is a function of the seed and of this, or comes from LibTorch's generator.
struct TrainingState {
  int epoch = 0;        ///< the epoch that it is in or, with no batch of it done, that begins next
  int64_t batches = 0;  ///< of that epoch, done
  uint64_t step = 0;    ///< optimizer steps taken

  // The epoch so far:
  StepResult sums;                          ///< over its training samples
  double seconds = 0;                       ///< of training
  double data_wait_seconds = 0;             ///< of these, waiting for the loader
  std::vector<BoundaryTraffic> traffic;     ///< of its training messages
  std::vector<StepEvaluation> evaluations;  ///< of all processes
  double evaluation_seconds = 0;            ///< of these
  TimesOfStages stages;                     ///< of training
  std::vector<CodecChoice> choices;         ///< that held in it, and perhaps one for the next step

  /// Where codecs are chosen: of this process's boundaries, until now. It is kept for checkpoints alone.
  SumsOfLayers layers;
};

inline constexpr const char* kRecordFile = "position.json";  ///< of a checkpoint

/// XXH3 of the tensors of a file, by name.
using Checksums = std::map<std::string, uint64_t>;

/// The content of a checkpoint's position.json. With several processes each leaves a part of the checkpoint:
/// the tensors of its stages and, of the position's sums, what it knows itself.
struct CheckpointRecord {
  TrainingState state;                         ///< where the training stood
  RankTopology place;                          ///< whose part it is
  uint64_t seed = 0;                           ///< of the run
  std::string config;                          ///< resolved, as TOML
  std::string data;                            ///< their fingerprint(); empty: not known
  std::vector<std::string> metrics;            ///< the lines of metrics.jsonl so far, the same in every part
  std::map<std::string, Checksums> checksums;  ///< by the name of the file

  /// Those of one file; none where the record does not know it.
  const Checksums& checksums_of(const std::string& file) const;
};

/// Writes FOLDER/position.json, with a checksum of its own. Throws Error.
void write_record(const std::filesystem::path& folder, const CheckpointRecord& record);

/// Reads FOLDER/position.json. Throws InputError that names the file when it is not what write_record() wrote.
CheckpointRecord read_record(const std::filesystem::path& folder);

}  // namespace strait
