#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "strait/boundary/channel.h"
#include "strait/config/config.h"
#include "strait/models/model.h"
#include "strait/transport/group_part.h"

namespace strait {

/// What crosses all boundaries in a step of the optimizer, both directions and all replicas together, with
/// compression, in training of `samples`. Found by sending normal numbers across each boundary twice, so
/// that a scheme that begins with whole tensors has got over that: exact where a message's size does not depend
/// on what is in it. Where some steps run their batches twice (Link::needs_previous()) it is such a step. Only
/// raw_bytes and wire_bytes count. The exchange of replicas is not in it. Throws InputError where a codec makes
/// messages longer than they are without it, or does not take their shape, that of the fewer samples at the end
/// of a batch or of a test set of `test_samples` included, and where memory has no room for one.
Traffic expected_traffic(const Config& config, Model& model, int64_t samples, int64_t test_samples);

/// What a run into `folder` is going to do, for people: network, stages, data, training, compression with the
/// bytes that it should cost, device and threads, one line each. For `processes` that train together, of which
/// `processes_here` are on this machine; LibTorch's threads are those of this process. Throws what
/// cut_into_stages() throws.
std::vector<std::string> start_summary(const Config& config, const std::filesystem::path& folder, Model& model,
                                       const DataSplits& data, int processes, int processes_here);

/// What one of several processes runs.
std::string summary_of_rank(const Config& config, const Model& model, const RankTopology& place);

}  // namespace strait
