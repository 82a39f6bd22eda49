#include "strait/kernels/cuda/group_coding.cuh"
#include "strait/kernels/cuda/level_coders.h"

namespace strait::kernels::cuda {

void encode_symmetric(const float* x, const Layout& layout, uint32_t bits, Rounding rounding, void* scales,
                      void* codes, void* workspace, uint32_t* faults, Stream stream) {
  const Encoding<SymmetricCoder> work{x,
                                      nullptr,
                                      places_of(layout),
                                      SymmetricCoder::of(bits, rounding),
                                      scales,
                                      static_cast<uint8_t*>(codes),
                                      faults};
  if (layout.group_size <= kSmallGroup) return launch_small<SymmetricCoder, Feedback::none>(work, stream);
  launch_large<SymmetricCoder, Feedback::none>(work, workspace, stream);
}

void decode_symmetric(const void* scales, const void* codes, const Layout& layout, uint32_t bits, float* out,
                      uint32_t* faults, Stream stream) {
  launch_decoder(scales, codes, layout, SymmetricCoder::of(bits, {}), /*add=*/false, out, faults, stream);
}

}  // namespace strait::kernels::cuda
