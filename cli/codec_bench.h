#pragma once

#include <string>
#include <vector>

#include "strait/links/options.h"

namespace strait::cli {

struct CodecBenchOptions {
  std::vector<std::string> codecs;  ///< none: the first samples of every codec
  std::string feedback{kNoFeedback};
  std::vector<std::string> shapes = {"100x64x32x32", "8x1024x768"};
  std::string in;   ///< a file of tensors, in place of shapes
  int threads = 1;  ///< 0: thread_count()
  std::string device =
      "cpu";  ///< as train.device; another than the CPU times the codecs there, without feedback
  bool json = false;
};

/// Verifies and times every codec on every input and prints the rates, a row as soon as it is there. Throws
/// InputError for a wrong shape and for a file whose tensors the codecs cannot send.
int run_codec_bench(const CodecBenchOptions& options);

}  // namespace strait::cli
