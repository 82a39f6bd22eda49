#pragma once

#include "strait/config/config.h"
#include "strait/train/automatic_codecs.h"

namespace strait {

/// Makes choices for runs of a configuration: measures the links of its boundaries, or takes those of
/// compression.auto.network or pipeline.link, puts together what all processes know, and decides on the first
/// of them. One process without any of these has links that are no limit.
ChooseCodecs codec_chooser(const Config& config);

}  // namespace strait
