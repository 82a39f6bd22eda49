#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strait/base/settings.h"
#include "strait/models/model.h"

namespace strait {

/// The key `bottleneck`, which every kind of network has: the channels of what crosses a cut.
SettingKey bottleneck_key();

/// Gives the model at each cut a linear map to `channels` channels, which ends the stage before the cut, and
/// one back, which begins the stage after it; both are trained with the network (Bian et al. 2024, "Does
/// Compressing Activations Help Model Parallel Training?"). Channels are dimension 1 of messages of four
/// dimensions, where the maps are convolutions of 1x1, and the last dimension of others.
///
/// Behind a cut CUT stand the layers `CUT.encoder`, with `CUT.encoder.weight` [channels, d], and `CUT-decoder`,
/// with `CUT.decoder.weight` [d, channels]; neither has a bias. The encoder begins with orthonormal rows and
/// the decoder as its transpose, so that what crosses begins as an orthogonal projection. Where a message has
/// `channels` channels already that is the identity, and the cut gets no layers. The values are drawn from
/// LibTorch's global generator.
///
/// Throws what cut_into_stages() throws, and InputError for more channels than a message has.
void add_bottlenecks(Model& model, const std::vector<std::string>& cuts, int64_t channels);

}  // namespace strait
