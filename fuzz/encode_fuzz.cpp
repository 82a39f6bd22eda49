#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/tokenizer/tokenizer.h"

/// Any bytes come back from their tokens, whether special tokens are text or not.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const strait::Tokenizer tokenizer(
      strait::parse_tokenizer_files(strait::fuzz::small_tokenizer(strait::fuzz::sample_merges())));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto special : {strait::SpecialTokens::as_text, strait::SpecialTokens::as_tokens}) {
    const auto ids = tokenizer.encode(text, special);
    STRAIT_CHECK(tokenizer.decode(ids) == text, "{} bytes do not come back", size);
  }
  return 0;
}
