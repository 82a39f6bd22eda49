#pragma once

// strait::experiment: runs and sweeps as configurations describe them.

#include "strait/experiment/handshake.h"     // IWYU pragma: export
#include "strait/experiment/run.h"           // IWYU pragma: export
#include "strait/experiment/sweep_runner.h"  // IWYU pragma: export
#include "strait/planning.h"                 // IWYU pragma: export
