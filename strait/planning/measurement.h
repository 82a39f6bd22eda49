#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "strait/config/config.h"
#include "strait/pipeline/simulate.h"
#include "strait/run/metrics.h"

namespace strait {

/// A way to compress what crosses the boundaries.
struct Candidate {
  std::string name;                ///< for people
  CompressionOptions compression;  ///< what it sets
  bool own = false;                ///< the configuration's
};

/// What a candidate's messages cost at every boundary, for a micro-batch.
struct CandidateCosts {
  Candidate candidate;                  ///< that costs so much
  std::vector<MessageCost> activation;  ///< one per boundary
  std::vector<MessageCost> gradient;    ///< one per boundary
  double ratio = 1;  ///< float32 bytes of the tensors over bytes of the messages, all boundaries together
};

/// What one training step of a network is made of.
struct Measurement {
  std::vector<StageSeconds> stages;        ///< in order
  std::vector<CandidateCosts> candidates;  ///< the first without compression
  std::vector<double> weight_bytes = {};   ///< of every stage: its parameters, one version of them

  /// Of the configuration's own candidate, which has to be there.
  CandidateCosts& own();
};

/// The candidates that are worth a look, the first without compression, and the configuration's own, which
/// may be one of them.
std::vector<Candidate> candidates_for(const Config& config);

/// The parts into which a batch is cut, and the rows of each but the last, which may be shorter.
struct MicroBatches {
  int count = 1;     ///< micro-batches of a batch
  int64_t rows = 1;  ///< samples of a micro-batch
};

/// How the configuration cuts a full batch of one replica.
MicroBatches micro_batches_of(const Config& config);

/// Runs a micro-batch of the configuration's data through every stage forward and backward, with initial
/// weights, and its activations and gradients through every candidate, header and checksum included; each a few
/// times after a warm-up, of which the median counts. Throws InputError for data or layers that are not
/// there, and where the data set is smaller than a micro-batch.
Measurement measure(const Config& config, std::span<const Candidate> candidates);

/// What the last epoch of a run says of itself.
struct RunMeasurement {
  std::vector<StageSeconds> stages;  ///< in order
  CandidateCosts own;                ///< of the run's compression
  double samples_per_second = 0;     ///< in training
};

/// The same of any epoch of a run of the configuration; `origin` is the file, for messages. Throws InputError
/// that names it where the epoch has no stage times, or times that nothing takes.
RunMeasurement measurement_of(const Config& config, const EpochMetrics& epoch, const std::string& origin);

/// Reads it from `folder`, of which `config` is the configuration. Throws InputError that names the file
/// where the run has no epoch yet or wrote no stage times.
RunMeasurement read_measurement(const Config& config, const std::filesystem::path& folder);

/// The same network as if it were cut into `stages` stages of equal cost, with the mean of the boundaries at
/// every one. Throws InputError where there is no boundary to take the mean of.
Measurement stretched(const Measurement& measurement, int stages);

}  // namespace strait
