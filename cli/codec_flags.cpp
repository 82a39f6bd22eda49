#include "cli/codec_flags.h"

#include <fmt/format.h>

#include "strait/base/error.h"
#include "strait/boundary/options.h"

namespace strait::cli {
namespace {

/// Calls what makes something of the spec of --codec or --feedback; its complaint may name the spec already.
template <class Make>
auto made_of_flag(const std::string& kind, const std::string& spec, const Make& make) {
  try {
    return make();
  } catch (const InputError& error) {
    const std::string complaint = error.what();
    const std::string named = fmt::format("{} \"{}\": ", kind, spec);
    throw InputError("--{}{}", complaint.starts_with(named) ? "" : named, complaint);
  }
}

}  // namespace

std::shared_ptr<const Link> link_of_flags(const std::string& codec, const std::string& feedback) {
  if (codec == kAutoCodec) {
    throw InputError(
        "--codec \"{}\": expected a codec of strait codec list; {} is for a training, which chooses for itself",
        codec, codec);
  }
  auto made = made_of_flag("codec", codec, [&] { return make_codec(codec); });
  return made_of_flag("feedback", feedback, [&] { return make_link(std::move(made), feedback); });
}

}  // namespace strait::cli
