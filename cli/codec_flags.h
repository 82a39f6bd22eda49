#pragma once

#include <memory>
#include <string>

#include "strait/links/link.h"

namespace strait::cli {

/// The link that --codec and --feedback describe. Throws InputError that names the flag and the spec, such as
/// `--codec "quant:0": the bits of a quantised value must be an integer from 1 to 8, not "0"`.
std::shared_ptr<const Link> link_of_flags(const std::string& codec, const std::string& feedback);

}  // namespace strait::cli
