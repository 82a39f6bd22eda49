#pragma once

// strait::codecs: compress a tensor into bytes and back. Needs no torch/torch.h.

#include "strait/codecs/codec.h"             // IWYU pragma: export
#include "strait/codecs/error_statistics.h"  // IWYU pragma: export
#include "strait/codecs/sparsifier.h"        // IWYU pragma: export
