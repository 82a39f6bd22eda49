#pragma once

#include "strait/config/config.h"
#include "strait/train/automatic_codecs.h"

namespace strait {

/// Makes choices for runs of a configuration: measures the links of its boundaries, or takes those of
/// compression.auto.network or pipeline.link, puts together what all processes know, and decides on the first
/// of them, again until every cosine that the choice rests on is known. A cosine is measured where it may gain
/// more time in the batches ahead than measuring it takes; a codec of which that is not so is not taken. One
/// process without any of these has links that are no limit.
ChooseCodecs codec_chooser(const Config& config);

}  // namespace strait
