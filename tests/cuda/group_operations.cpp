#include <cstring>
#include <limits>
#include <type_traits>

#include "strait/kernels/cuda/group_codecs.h"
#include "strait/kernels/cuda/level_coders.h"
#include "strait/kernels/cuda/range_coder.h"
#include "tests/cuda/on_host.h"
#include "tests/cuda/operations.h"

namespace strait::cuda_check {
namespace {

using namespace kernels::cuda;
using kernels::SmallFloat;

/// A tensor, and on the device the parts of a message of it.
struct Buffers {
  Buffers(const SharedTensor& of, const Layout& layout, size_t header_size, uint32_t bits)
      : tensor(of),
        headers(on_device<uint8_t>(layout.groups() * header_size)),
        codes(on_device<uint8_t>(layout.code_bytes(bits))),
        workspace(on_device<uint8_t>(quant_workspace(layout))) {}

  SharedTensor tensor;
  Shared<uint8_t> headers;
  Shared<uint8_t> codes;
  Shared<uint8_t> workspace;
};

using Launch = std::function<void(const Buffers&)>;

/// Whether a decoder gives what the host gives of the message that is in the buffers.
template <class Coder>
bool decodes_alike(const Buffers& buffers, const Layout& layout, const Coder& coder, const Launch& decode,
                   bool add) {
  buffers.tensor->faults.set({0});
  buffers.tensor->out.set(buffers.tensor->state);
  decode(buffers);
  auto out = buffers.tensor->state;
  const auto headers = buffers.headers->get();
  const auto codes = buffers.codes->get();
  on_host::decode_groups(headers.data(), std::span(codes), layout, coder, add, std::span(out));
  const auto got = buffers.tensor->out.get();
  return buffers.tensor->faults.get()[0] == 0 &&
         std::memcmp(got.data(), out.data(), out.size() * sizeof(float)) == 0;
}

/// Adds the encoder of a coder, with or without feedback, and without it the decoder, and where there is one
/// that adds to what is there, that one too.
template <Feedback feedback = Feedback::none, class Coder>
void add_operations(std::vector<Operation>& operations, const std::string& name, const SharedTensor& tensor,
                    const Layout& layout, const Coder& coder, bool is_timed, const Launch& encode,
                    const Launch& decode, const Launch& add = {}) {
  const Buffers buffers(tensor, layout, Coder::kHeaderSize, coder.bits);
  const auto encode_and_compare = [=](const std::vector<float>& x) {
    buffers.tensor->device_x.set(x);
    buffers.tensor->device_state.set(buffers.tensor->state);
    buffers.tensor->faults.set({0});
    encode(buffers);
    auto state = buffers.tensor->state;
    std::vector<uint8_t> headers(layout.groups() * Coder::kHeaderSize);
    std::vector<uint8_t> codes(layout.code_bytes(coder.bits));
    const uint32_t faults = on_host::encode_groups<feedback>(std::span(x), std::span(state), layout, coder,
                                                             headers.data(), std::span(codes));
    if (faults != 0) return (buffers.tensor->faults.get()[0] & kNotSendable) == (faults & kNotSendable);
    return buffers.tensor->faults.get()[0] == 0 && buffers.headers->get() == headers &&
           buffers.codes->get() == codes &&
           (feedback == Feedback::none || buffers.tensor->device_state.get() == state);
  };
  const auto check_encoder = [=] {
    auto bad = buffers.tensor->x;
    bad.back() = std::numeric_limits<float>::quiet_NaN();
    const bool refuses = encode_and_compare(bad);
    return encode_and_compare(buffers.tensor->x) && refuses;
  };
  operations.push_back({name + " encode", [=] { encode(buffers); }, check_encoder, is_timed});
  if (feedback != Feedback::none) return;
  const auto check_decoder = [=] {
    const auto headers = buffers.headers->get();
    buffers.headers->set(std::vector<uint8_t>(headers.size(), 0xff));
    buffers.tensor->faults.set({0});
    decode(buffers);
    const bool refuses = (buffers.tensor->faults.get()[0] & kNotAMessage) != 0;
    buffers.headers->set(headers);
    return refuses && decodes_alike(buffers, layout, coder, decode, /*add=*/false);
  };
  operations.push_back({name + " decode", [=] { decode(buffers); }, check_decoder, is_timed});
  if (!add) return;
  const auto check_sum = [=] { return decodes_alike(buffers, layout, coder, add, /*add=*/true); };
  operations.push_back({name + " add", [=] { add(buffers); }, check_sum, is_timed});
}

template <Feedback feedback, class Coder = RangeCoder>
void add_quant(std::vector<Operation>& operations, const std::string& name, const SharedTensor& tensor,
               const Layout& layout, uint32_t bits, Rounding rounding, bool is_timed) {
  constexpr bool kShort = std::is_same_v<Coder, ShortRangeCoder>;
  const QuantForm form{bits, kShort ? kernels::RangeType::bf16 : kernels::RangeType::fp32};
  add_operations<feedback>(
      operations, name, tensor, layout, Coder::of(bits, rounding), is_timed,
      [=](const Buffers& at) {
        encode_quant(at.tensor->device_x.data(), {feedback, at.tensor->device_state.data()}, layout, form,
                     rounding, at.headers->data(), at.codes->data(), at.workspace->data(),
                     at.tensor->faults.data(), {});
      },
      [=](const Buffers& at) {
        decode_quant(at.headers->data(), at.codes->data(), layout, form, /*add=*/false, at.tensor->out.data(),
                     at.tensor->faults.data(), {});
      },
      [=](const Buffers& at) {
        decode_quant(at.headers->data(), at.codes->data(), layout, form, /*add=*/true, at.tensor->out.data(),
                     at.tensor->faults.data(), {});
      });
}

void add_quants(std::vector<Operation>& operations, const std::string& scope, const SharedTensor& tensor,
                const Layout& layout) {
  for (uint32_t bits = 1; bits <= 8; ++bits) {
    const std::string name = "quant:" + std::to_string(bits) + "," + scope;
    const bool is_timed = bits == 2 || bits == 4 || bits == 8;
    add_quant<Feedback::none>(operations, name, tensor, layout, bits, {}, is_timed);
    const Rounding stochastic{true, {3, 4, (uint64_t{1} << 32) - 50}};
    add_quant<Feedback::none>(operations, name + ",stochastic", tensor, layout, bits, stochastic, bits == 4);
    add_quant<Feedback::none, ShortRangeCoder>(operations, name + ",bf16", tensor, layout, bits, {}, bits == 2);
  }
  add_quant<Feedback::ef>(operations, "ef quant:4," + scope, tensor, layout, 4, {}, true);
  add_quant<Feedback::ef21>(operations, "ef21 quant:4," + scope, tensor, layout, 4, {}, true);
  add_quant<Feedback::ef21, ShortRangeCoder>(operations, "ef21 quant:4,bf16," + scope, tensor, layout, 4, {},
                                             false);
  for (const uint32_t bits : {2U, 4U, 7U}) {
    add_operations(
        operations, "symmetric quant:" + std::to_string(bits) + "," + scope, tensor, layout,
        SymmetricCoder::of(bits, {}), bits == 4,
        [=](const Buffers& at) {
          encode_symmetric(at.tensor->device_x.data(), layout, bits, {}, at.headers->data(), at.codes->data(),
                           at.workspace->data(), at.tensor->faults.data(), {});
        },
        [=](const Buffers& at) {
          decode_symmetric(at.headers->data(), at.codes->data(), layout, bits, at.tensor->out.data(),
                           at.tensor->faults.data(), {});
        });
  }
}

void add_small_floats(std::vector<Operation>& operations, const SharedTensor& tensor) {
  const Shape& shape = tensor->shape;
  const SmallFloat e4m3{3, 0x1p-6F, 448, 8};
  const SmallFloat e2m1{1, 1, 6, 4};
  const Layout fp8{shape.rows, shape.row_size, 128};
  const Layout mx{shape.rows, shape.row_size, 32};
  add_operations(
      operations, "fp8:e4m3", tensor, fp8, Fp8Coder::of(e4m3), true,
      [=](const Buffers& at) {
        encode_fp8(at.tensor->device_x.data(), fp8, e4m3, at.headers->data(), at.codes->data(),
                   at.tensor->faults.data(), {});
      },
      [=](const Buffers& at) {
        decode_fp8(at.headers->data(), at.codes->data(), fp8, e4m3, at.tensor->out.data(),
                   at.tensor->faults.data(), {});
      });
  for (const auto& [name, format] : {std::pair("mx:e4m3", e4m3), std::pair("mx:e2m1", e2m1)}) {
    add_operations(
        operations, name, tensor, mx, MxFloatCoder::of(format), true,
        [=, format = format](const Buffers& at) {
          encode_mx(at.tensor->device_x.data(), mx, format, at.headers->data(), at.codes->data(),
                    at.tensor->faults.data(), {});
        },
        [=, format = format](const Buffers& at) {
          decode_mx(at.headers->data(), at.codes->data(), mx, format, at.tensor->out.data(),
                    at.tensor->faults.data(), {});
        });
  }
  add_operations(
      operations, "mx:int8", tensor, mx, MxIntegerCoder{}, true,
      [=](const Buffers& at) {
        encode_mx_integers(at.tensor->device_x.data(), mx, at.headers->data(), at.codes->data(),
                           at.tensor->faults.data(), {});
      },
      [=](const Buffers& at) {
        decode_mx_integers(at.headers->data(), at.codes->data(), mx, at.tensor->out.data(),
                           at.tensor->faults.data(), {});
      });
}

}  // namespace

std::vector<Operation> group_operations(const SharedTensor& tensor) {
  const Shape& shape = tensor->shape;
  std::vector<Operation> operations;
  add_quants(operations, "tensor", tensor, {1, shape.elements(), shape.elements()});
  add_quants(operations, "sample", tensor, {shape.rows, shape.row_size, shape.row_size});
  add_quants(operations, "block:64", tensor, {shape.rows, shape.row_size, 64});
  add_small_floats(operations, tensor);
  return operations;
}

}  // namespace strait::cuda_check
