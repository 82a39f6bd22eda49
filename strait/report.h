#pragma once

// strait::report: what runs have left, as statistics, a page, Markdown and CSV. Needs no LibTorch.

#include "strait/report/networks.h"    // IWYU pragma: export
#include "strait/report/run.h"         // IWYU pragma: export
#include "strait/report/statistics.h"  // IWYU pragma: export
#include "strait/report/tables.h"      // IWYU pragma: export
#include "strait/report/writers.h"     // IWYU pragma: export
