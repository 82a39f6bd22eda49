#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "strait/doctor/advice.h"
#include "strait/doctor/diagnosis.h"
#include "strait/pipeline/simulate.h"

namespace strait {

/// The version of the form of the file that diagnosis_json() makes, and the only one that is read.
inline constexpr uint64_t kLinkFileSchema = 1;

/// The diagnosis as a JSON object on one line. `boundaries` has what crosses each boundary: its ranks, the
/// route, bits per second of activations and of gradients, and the latency in seconds; these are null where
/// both stages are in one process. `ranks` has what is known of each rank, `pairs` how any two speak with each
/// other, and `findings` what is to be said about it.
std::string diagnosis_json(const Diagnosis& diagnosis, std::span<const Finding> findings);

/// A boundary with what was measured of it.
struct MeasuredBoundary {
  BoundaryPlace place;        ///< where it is
  Route route = Route::none;  ///< how its ranks speak with each other
  BoundaryLink link;          ///< what crosses it; unlimited within one process
};

/// What planning takes from the file.
struct LinkFile {
  int ranks = 0;                             ///< that there were
  std::vector<MeasuredBoundary> boundaries;  ///< of all replicas, in order
};

/// Reads what diagnosis_json() makes. Throws InputError that names the file and the key where it is not that,
/// or of another version of its form.
LinkFile read_link_file(const std::filesystem::path& path);

/// The boundaries of the one pipeline that the configuration describes, with that many ranks. Throws InputError
/// that names the file, as `path`, and the key where it is of other ranks or boundaries.
std::vector<MeasuredBoundary> boundaries_for(const LinkFile& file, const std::filesystem::path& path,
                                             const Config& config, int ranks);

}  // namespace strait
