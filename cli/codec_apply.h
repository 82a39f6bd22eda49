#pragma once

#include <string>

#include "strait/links/options.h"

namespace strait::cli {

struct CodecApplyOptions {
  std::string codec;
  std::string feedback{kNoFeedback};
  std::string in;
  std::string out;
  bool json = false;
};

/// Sends the messages of a file over a link, writes what the receiver sees and prints what it cost.
/// Throws InputError for a file that does not hold messages.
int run_codec_apply(const CodecApplyOptions& options);

}  // namespace strait::cli
