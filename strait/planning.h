#pragma once

// strait::planning: what codecs and steps cost, measured and predicted.

#include "strait/config/config.h"          // IWYU pragma: export
#include "strait/config/manual.h"          // IWYU pragma: export
#include "strait/config/model_and_data.h"  // IWYU pragma: export
#include "strait/planning/codec_bench.h"   // IWYU pragma: export
#include "strait/planning/forecast.h"      // IWYU pragma: export
#include "strait/planning/measurement.h"   // IWYU pragma: export
#include "strait/planning/prediction.h"    // IWYU pragma: export
#include "strait/train.h"                  // IWYU pragma: export
