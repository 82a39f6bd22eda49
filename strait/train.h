#pragma once

// strait::train: strait's own networks, data sets and training loop over a pipeline.

#include "strait/base/library_variables.h"        // IWYU pragma: export
#include "strait/checkpoint/checkpoint_folder.h"  // IWYU pragma: export
#include "strait/checkpoint/model_file.h"         // IWYU pragma: export
#include "strait/data/loader.h"                   // IWYU pragma: export
#include "strait/data/registry.h"                 // IWYU pragma: export
#include "strait/formats/safetensors.h"           // IWYU pragma: export
#include "strait/formats/tensorboard.h"           // IWYU pragma: export
#include "strait/models/gpt2.h"                   // IWYU pragma: export
#include "strait/models/resnet18.h"               // IWYU pragma: export
#include "strait/pipeline.h"                      // IWYU pragma: export
#include "strait/tokenizer/tokenizer.h"           // IWYU pragma: export
#include "strait/train/generator.h"               // IWYU pragma: export
#include "strait/train/optimizer.h"               // IWYU pragma: export
#include "strait/train/run_folder.h"              // IWYU pragma: export
#include "strait/train/runtime.h"                 // IWYU pragma: export
#include "strait/train/trainer.h"                 // IWYU pragma: export
