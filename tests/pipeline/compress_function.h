#pragma once

#include <torch/torch.h>

#include <memory>

#include "strait/codecs/codec.h"

namespace strait::test {

/// Identity forward and backward with a codec's operator applied to each: what a boundary computes, said
/// in autograd's terms and without bytes.
class CompressFunction : public torch::autograd::Function<CompressFunction> {
 public:
  struct Codecs {
    std::shared_ptr<const Codec> activation;
    std::shared_ptr<const Codec> gradient;
    uint64_t seed;
    uint64_t step;
    uint16_t boundary;
  };
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& x, int64_t codecs) {
    context->saved_data["codecs"] = codecs;
    const auto& all = *reinterpret_cast<const Codecs*>(codecs);
    return all.activation->reconstruct(x, message(all, Direction::activation));
  }
  static torch::autograd::tensor_list backward(torch::autograd::AutogradContext* context,
                                               torch::autograd::tensor_list gradients) {
    const auto& all = *reinterpret_cast<const Codecs*>(context->saved_data["codecs"].toInt());
    return {all.gradient->reconstruct(gradients[0].contiguous(), message(all, Direction::gradient)), {}};
  }

 private:
  static MessageContext message(const Codecs& all, Direction direction) {
    return {.seed = all.seed, .boundary = all.boundary, .direction = direction, .step = all.step};
  }
};

}  // namespace strait::test
