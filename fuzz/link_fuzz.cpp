// Decoder::decode() of any payload, for every link, with state from a message before.

#include "fuzz/link_input.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using strait::fuzz::CodecInput;
  if (size < sizeof(CodecInput)) return 0;
  strait::ByteReader in(std::as_bytes(std::span(data, size)));
  const auto input = in.get<CodecInput>();
  strait::fuzz::LinkUnderTest link(input);
  try {
    const at::Tensor x = link.decoder().decode(in, link.meta(), link.context()).tensor;
    STRAIT_CHECK(strait::meta_of(x).shape == link.meta().shape && x.scalar_type() == at::kFloat,
                 "decoded to another shape or type");
  } catch (const strait::WireError&) {
  } catch (const strait::NumericError&) {  // sums of what was sent may be too large to keep
  }
  return 0;
}
