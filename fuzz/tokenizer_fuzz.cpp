#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/tokenizer_input.h"
#include "strait/base/error.h"
#include "strait/tokenizer/tokenizer.h"

namespace {

/// Files are refused with an InputError, or give a tokenizer from which a text comes back.
void try_files(const std::vector<strait::NamedText>& files, std::string_view text) {
  strait::BpeModel model;
  try {
    model = strait::parse_tokenizer_files(files);
  } catch (const strait::InputError&) {
    return;
  }
  const strait::Tokenizer tokenizer(std::move(model));
  STRAIT_CHECK(tokenizer.decode(tokenizer.encode(text)) == text, "the text does not come back");
}

}  // namespace

/// The input is a tokenizer.json; and again, up to the first NUL byte, entries of a vocabulary behind those of
/// the 256 bytes, and behind it a merges.txt and the rest of a tokenizer.json from the merges on.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string input(reinterpret_cast<const char*>(data), size);
  try_files({{"tokenizer.json", input}}, input);
  const size_t end = std::min(input.find('\0'), size);
  const std::string vocab = fmt::format("{{{}{}}}", strait::fuzz::byte_entries(), input.substr(0, end));
  const std::string rest = input.substr(std::min(end + 1, size));
  try_files({{"vocab.json", vocab}, {"merges.txt", rest}}, input);
  try_files({{"tokenizer.json", R"({"pre_tokenizer": {"type": "ByteLevel"}, "model": {"vocab": )" + vocab +
                                    R"(, "merges": [)" + rest}},
            input);
  return 0;
}
