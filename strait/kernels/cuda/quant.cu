#include "strait/kernels/cuda/group_coding.cuh"
#include "strait/kernels/cuda/range_coder.h"

namespace strait::kernels::cuda {
namespace {

template <Feedback feedback, class Coder>
void encode_ranges(const Encoding<Coder>& work, void* workspace, Stream stream) {
  if (work.places.group_size() <= kSmallGroup) return launch_small<Coder, feedback>(work, stream);
  launch_large<Coder, feedback>(work, workspace, stream);
}

template <class Coder>
void encode_with(const Encoding<Coder>& work, Feedback feedback, void* workspace, Stream stream) {
  switch (feedback) {
    case Feedback::none:
      return encode_ranges<Feedback::none>(work, workspace, stream);
    case Feedback::ef:
      return encode_ranges<Feedback::ef>(work, workspace, stream);
    case Feedback::ef21:
      return encode_ranges<Feedback::ef21>(work, workspace, stream);
  }
}

}  // namespace

size_t quant_workspace(const Layout& layout) {
  return layout.group_size <= kSmallGroup ? 0 : layout.groups() * sizeof(RangeCoder::Extent);
}

void encode_quant(const float* x, FeedbackState feedback, const Layout& layout, QuantForm form,
                  Rounding rounding, void* ranges, void* codes, void* workspace, uint32_t* faults,
                  Stream stream) {
  const auto encode = [&](auto coder) {
    const Encoding<decltype(coder)> work{
        x, feedback.state, places_of(layout), coder, ranges, static_cast<uint8_t*>(codes), faults};
    encode_with(work, feedback.kind, workspace, stream);
  };
  form.ranges == RangeType::fp32 ? encode(RangeCoder::of(form.bits, rounding))
                                 : encode(ShortRangeCoder::of(form.bits, rounding));
}

void decode_quant(const void* ranges, const void* codes, const Layout& layout, QuantForm form, bool add,
                  float* out, uint32_t* faults, Stream stream) {
  const auto decode = [&](auto coder) {
    launch_decoder(ranges, codes, layout, coder, add, out, faults, stream);
  };
  form.ranges == RangeType::fp32 ? decode(RangeCoder::of(form.bits, {}))
                                 : decode(ShortRangeCoder::of(form.bits, {}));
}

}  // namespace strait::kernels::cuda
