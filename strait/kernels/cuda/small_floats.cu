#include "strait/kernels/cuda/group_coding.cuh"
#include "strait/kernels/cuda/level_coders.h"

namespace strait::kernels::cuda {
namespace {

template <class Coder>
void encode_blocks(const float* x, const Layout& layout, const Coder& coder, void* headers, void* codes,
                   uint32_t* faults, Stream stream) {
  const Encoding<Coder> work{x,     nullptr, places_of(layout), coder, headers, static_cast<uint8_t*>(codes),
                             faults};
  launch_small<Coder, Feedback::none>(work, stream);
}

}  // namespace

void encode_fp8(const float* x, const Layout& layout, SmallFloat format, void* scales, void* codes,
                uint32_t* faults, Stream stream) {
  encode_blocks(x, layout, Fp8Coder::of(format), scales, codes, faults, stream);
}

void decode_fp8(const void* scales, const void* codes, const Layout& layout, SmallFloat format, float* out,
                uint32_t* faults, Stream stream) {
  launch_decoder(scales, codes, layout, Fp8Coder::of(format), /*add=*/false, out, faults, stream);
}

void encode_mx(const float* x, const Layout& layout, SmallFloat format, void* exponents, void* codes,
               uint32_t* faults, Stream stream) {
  encode_blocks(x, layout, MxFloatCoder::of(format), exponents, codes, faults, stream);
}

void decode_mx(const void* exponents, const void* codes, const Layout& layout, SmallFloat format, float* out,
               uint32_t* faults, Stream stream) {
  launch_decoder(exponents, codes, layout, MxFloatCoder::of(format), /*add=*/false, out, faults, stream);
}

void encode_mx_integers(const float* x, const Layout& layout, void* exponents, void* codes, uint32_t* faults,
                        Stream stream) {
  encode_blocks(x, layout, MxIntegerCoder{}, exponents, codes, faults, stream);
}

void decode_mx_integers(const void* exponents, const void* codes, const Layout& layout, float* out,
                        uint32_t* faults, Stream stream) {
  launch_decoder(exponents, codes, layout, MxIntegerCoder{}, /*add=*/false, out, faults, stream);
}

}  // namespace strait::kernels::cuda
