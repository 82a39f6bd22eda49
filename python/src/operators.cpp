// torch.ops.strait.*: the operators on tensors. Their shapes without data are in python/strait/functional.py.

#include <ATen/core/grad_mode.h>
#include <torch/library.h>

#include "python/src/errors.h"
#include "python/src/tensors.h"
#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/codecs/codec.h"

namespace strait::python {
namespace {

/// Where a message stands in a run, which keys the random draws.
MessageContext context_of(int64_t seed, int64_t step, int64_t boundary, c10::string_view direction,
                          int64_t first_row) {
  const auto expect = [](bool holds, std::string_view name, std::string_view expected, int64_t found) {
    if (!holds) throw InputError("{}: expected {}, found {}", name, expected, found);
  };
  expect(step >= 0, "step", "a number from 0 on", step);
  expect(boundary >= 0 && boundary <= UINT16_MAX, "boundary", "a number from 0 to 65535", boundary);
  expect(first_row >= 0, "first_row", "a number from 0 on", first_row);
  MessageContext context;
  context.seed = static_cast<uint64_t>(seed);
  context.step = static_cast<uint64_t>(step);
  context.boundary = static_cast<uint16_t>(boundary);
  context.first_row = static_cast<size_t>(first_row);
  for (const Direction each : {Direction::activation, Direction::gradient}) {
    context.direction = each;
    if (std::string_view(direction.data(), direction.size()) == to_string(each)) return context;
  }
  throw InputError("direction: expected \"activation\" or \"gradient\", found \"{}\"",
                   std::string_view(direction.data(), direction.size()));
}

/// What `work` makes with the codec of a spec. What it cannot send, and bytes that it has not written, are
/// errors that name it.
template <class Work>
at::Tensor with_codec(c10::string_view spec, const Work& work) {
  const auto codec = make_codec({spec.data(), spec.size()});
  try {
    return work(*codec);
  } catch (const NumericError& error) {
    throw NumericError("codec {}: {}", codec->spec(), error.what());
  } catch (const WireError& error) {
    throw WireError("codec {}: {}", codec->spec(), error.what());
  }
}

at::Tensor compress(const at::Tensor& x, c10::string_view codec, int64_t seed, int64_t step, int64_t boundary,
                    c10::string_view direction, int64_t first_row) {
  const at::NoGradGuard no_grad;
  const at::Tensor message = as_message(x, "compress");
  const auto context = context_of(seed, step, boundary, direction, first_row);
  return with_codec(codec, [&](const Codec& made) { return made.encode(message, context); });
}

at::Tensor decompress(const at::Tensor& payload, c10::string_view codec, at::IntArrayRef shape, int64_t seed,
                      int64_t step, int64_t boundary, c10::string_view direction, int64_t first_row) {
  const at::NoGradGuard no_grad;
  if (payload.scalar_type() != at::kByte) {
    throw WrongType("decompress: expected a payload of uint8, found {}", c10::toString(payload.scalar_type()));
  }
  if (payload.dim() != 1 || payload.layout() != at::kStrided) {
    throw InputError("decompress: expected a payload of one dimension, found {}", payload.dim());
  }
  const auto context = context_of(seed, step, boundary, direction, first_row);
  return with_codec(codec, [&](const Codec& made) {
    const MessageMeta meta = meta_of_shape(shape);
    const PayloadSize size = made.payload_size(meta);
    const auto found = static_cast<size_t>(payload.numel());
    if (size.exact ? found != size.bound : found > size.bound) {  // before memory is taken for the shape
      throw WireError("the payload has {} bytes, expected {}{} for a tensor of shape {}", found,
                      size.exact ? "" : "at most ", size.bound, shape_text(shape));
    }
    return made.decode(payload, meta, context);
  });
}

at::Tensor reconstruct(const at::Tensor& x, c10::string_view codec, int64_t seed, int64_t step,
                       int64_t boundary, c10::string_view direction, int64_t first_row) {
  const at::NoGradGuard no_grad;
  const at::Tensor message = as_message(x, "reconstruct");
  const auto context = context_of(seed, step, boundary, direction, first_row);
  const at::Tensor seen =
      with_codec(codec, [&](const Codec& made) { return made.reconstruct(message, context); });
  return narrowed(seen, x.scalar_type(), "reconstruct");
}

}  // namespace

// SymInt: what torch.compile makes of a call serves every step and seed.
TORCH_LIBRARY(strait, library) {
  library.def(
      "compress(Tensor x, str codec, *, SymInt seed=0, SymInt step=0, SymInt boundary=0, "
      "str direction='activation', SymInt first_row=0) -> Tensor");
  library.def(
      "decompress(Tensor payload, str codec, SymInt[] shape, *, SymInt seed=0, SymInt step=0, "
      "SymInt boundary=0, str direction='activation', SymInt first_row=0) -> Tensor");
  library.def(
      "reconstruct(Tensor x, str codec, *, SymInt seed=0, SymInt step=0, SymInt boundary=0, "
      "str direction='activation', SymInt first_row=0) -> Tensor");
}

TORCH_LIBRARY_IMPL(strait, CompositeExplicitAutograd, library) {
  library.impl("compress", &compress);
  library.impl("decompress", &decompress);
  library.impl("reconstruct", &reconstruct);
}

// What comes out is no function of its input that has a derivative: it requires no gradient.
TORCH_LIBRARY_IMPL(strait, Autograd, library) {
  library.impl("compress", torch::CppFunction::makeFallthrough());
  library.impl("decompress", torch::CppFunction::makeFallthrough());
  library.impl("reconstruct", torch::CppFunction::makeFallthrough());
}

}  // namespace strait::python
