#pragma once

// strait::pipeline: training a network of one's own over stages; what crosses between these, over what, when.

#include "strait/base/stop_signal.h"          // IWYU pragma: export
#include "strait/boundary/boundary.h"         // IWYU pragma: export
#include "strait/codecs.h"                    // IWYU pragma: export
#include "strait/links/link.h"                // IWYU pragma: export
#include "strait/pipeline/executor.h"         // IWYU pragma: export
#include "strait/pipeline/pipeline.h"         // IWYU pragma: export
#include "strait/pipeline/schedules.h"        // IWYU pragma: export
#include "strait/pipeline/simulate.h"         // IWYU pragma: export
#include "strait/pipeline/stage.h"            // IWYU pragma: export
#include "strait/pipeline/validate.h"         // IWYU pragma: export
#include "strait/transport/join_group.h"      // IWYU pragma: export
#include "strait/transport/launched_ranks.h"  // IWYU pragma: export
#include "strait/transport/loopback.h"        // IWYU pragma: export
#include "strait/transport/stop_agreement.h"  // IWYU pragma: export
