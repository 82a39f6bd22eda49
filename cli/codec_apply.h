#pragma once

#include <string>

namespace strait::cli {

struct CodecApplyOptions {
  std::string codec;
  std::string feedback = "none";
  std::string in;
  std::string out;
  bool json = false;
};

/// Sends the messages of a file over a link, writes what the receiver sees and prints what it cost.
/// Throws InputError for a file that does not hold messages.
int run_codec_apply(const CodecApplyOptions& options);

}  // namespace strait::cli
