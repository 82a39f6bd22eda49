#pragma once

#include "strait/config/config.h"
#include "strait/train/automatic_codecs.h"

namespace strait {

/// Makes choices for runs of a configuration: measures the links of its boundaries, or takes those of
/// compression.auto.network or pipeline.link, puts together what all processes know, and decides on the first
/// of them. One process without any of these has links that are no limit.
ChooseCodecs codec_chooser(const Config& config);

/// Whether the links for which a run of so many processes makes choices are known to be no limit before
/// anything is measured.
bool links_are_no_limit(const Config& config, int processes);

}  // namespace strait
