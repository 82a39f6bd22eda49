#pragma once

// strait::models: networks as lists of named layers, strait's own and the reader's. Brings torch/torch.h.

#include "strait/models/gpt2.h"      // IWYU pragma: export
#include "strait/models/kinds.h"     // IWYU pragma: export
#include "strait/models/layer.h"     // IWYU pragma: export
#include "strait/models/model.h"     // IWYU pragma: export
#include "strait/models/resnet18.h"  // IWYU pragma: export
