#include "strait/kernels/cuda/group_coding.cuh"
#include "strait/kernels/cuda/range_coder.h"

namespace strait::kernels::cuda {
namespace {

template <Feedback feedback>
void encode_ranges(const Encoding<RangeCoder>& work, void* workspace, Stream stream) {
  if (work.places.group_size() <= kSmallGroup) return launch_small<RangeCoder, feedback>(work, stream);
  launch_large<RangeCoder, feedback>(work, workspace, stream);
}

}  // namespace

size_t quant_workspace(const Layout& layout) {
  return layout.group_size <= kSmallGroup ? 0 : layout.groups() * sizeof(RangeCoder::Extent);
}

void encode_quant(const float* x, FeedbackState feedback, const Layout& layout, uint32_t bits,
                  Rounding rounding, void* ranges, void* codes, void* workspace, uint32_t* faults,
                  Stream stream) {
  const Encoding<RangeCoder> work{x,
                                  feedback.state,
                                  places_of(layout),
                                  RangeCoder::of(bits, rounding),
                                  ranges,
                                  static_cast<uint8_t*>(codes),
                                  faults};
  switch (feedback.kind) {
    case Feedback::none:
      return encode_ranges<Feedback::none>(work, workspace, stream);
    case Feedback::ef:
      return encode_ranges<Feedback::ef>(work, workspace, stream);
    case Feedback::ef21:
      return encode_ranges<Feedback::ef21>(work, workspace, stream);
  }
}

void decode_quant(const void* ranges, const void* codes, const Layout& layout, uint32_t bits, bool add,
                  float* out, uint32_t* faults, Stream stream) {
  launch_decoder(ranges, codes, layout, RangeCoder::of(bits, {}), add, out, faults, stream);
}

}  // namespace strait::kernels::cuda
