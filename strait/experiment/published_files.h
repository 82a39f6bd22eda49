#pragma once

#include <vector>

#include "strait/config/config.h"
#include "strait/tokenizer/tokenizer_files.h"

namespace strait {

/// What stands beside the weights in a run's folder so that transformers' from_pretrained() takes it: a
/// config.json, with what the one beside model.init says besides; generation_config.json, where that has one;
/// and the files of the tokenizer. Names are within the folder. Nothing for a network that transformers has no
/// class for (publish()). Throws InputError where a file cannot be read.
std::vector<NamedText> published_files(const Config& config);

}  // namespace strait
