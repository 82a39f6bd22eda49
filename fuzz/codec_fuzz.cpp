// Codec::decode() of any payload, for every sample of codec_list.def. What decodes must be fit to be encoded
// again: links feed decoded tensors back into encoders.

#include <map>

#include "fuzz/codec_input.h"
#include "strait/codecs/codec.h"

namespace {

using strait::fuzz::CodecInput;

const strait::Codec& codec_of(const CodecInput& input) {
  static std::map<std::string_view, std::shared_ptr<const strait::Codec>> codecs;
  const auto& list = strait::codec_list();
  const strait::CodecInfo* info = &list[input.codec % list.size()];
  for (const auto& row : list) {
    if (row.id == input.codec) info = &row;
  }
  const std::string_view spec = info->samples[input.sample % info->samples.size()];
  auto& codec = codecs[spec];
  if (codec == nullptr) codec = strait::make_codec(spec);
  return *codec;
}

void encode(const strait::Codec& codec, const at::Tensor& x, const strait::MessageContext& context) {
  try {
    codec.encode(x, context);
  } catch (const strait::NumericError&) {  // decoding may give what is too large, or not finite
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < sizeof(CodecInput)) return 0;
  strait::ByteReader in(std::as_bytes(std::span(data, size)));
  const auto input = in.get<CodecInput>();
  const strait::Codec& codec = codec_of(input);
  const strait::MessageMeta meta = input.meta();
  try {
    codec.payload_size(meta);
  } catch (const strait::InputError&) {  // a shape that the codec does not take
    return 0;
  }
  at::Tensor x;
  try {
    x = codec.read(in, meta, input.context()).tensor;
  } catch (const strait::WireError&) {
    return 0;
  }
  STRAIT_CHECK(strait::meta_of(x).shape == meta.shape && x.scalar_type() == at::kFloat && x.is_contiguous(),
               "{} decoded to another shape or type", codec.spec());
  encode(codec, x, input.context());
  return 0;
}
