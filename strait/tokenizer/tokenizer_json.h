#pragma once

#include "strait/tokenizer/tokenizer_files.h"

namespace strait {

/// Reads a tokenizer.json of Hugging Face's, as parse_tokenizer_files() says. Throws InputError that names the
/// file and the part.
BpeModel parse_tokenizer_json(const NamedText& file);

}  // namespace strait
