// The arithmetic of the CUDA kernels, run on the CPU, writes the payloads of the codecs and reads them alike.

#include <ATen/core/ivalue.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>

#include "strait/base/error.h"
#include "strait/codecs/quant_group.h"
#include "strait/codecs/small_float.h"
#include "strait/kernels/cuda/level_coders.h"
#include "strait/kernels/cuda/range_coder.h"
#include "tests/codecs/inputs.h"
#include "tests/cuda/on_host.h"

namespace strait {
namespace {

using kernels::cuda::Layout;
using kernels::cuda::Rounding;
using kernels::cuda::ValueType;
namespace on_host = kernels::cuda::on_host;

/// A message's bytes, and what kernels of one codec make of a tensor and of bytes.
struct Kernels {
  std::function<uint32_t(std::span<const float>, std::vector<uint8_t>&)> encode;
  std::function<uint32_t(const std::vector<uint8_t>&, std::span<float>)> decode;
};

template <class Coder>
Kernels kernels_of(const Coder& coder, const Layout& layout) {
  const size_t headers = layout.groups() * Coder::kHeaderSize;
  return {[=](std::span<const float> x, std::vector<uint8_t>& out) {
            out.resize(headers + layout.code_bytes(coder.bits));
            return on_host::encode_groups(x, {}, layout, coder, out.data(), std::span(out).subspan(headers));
          },
          [=](const std::vector<uint8_t>& in, std::span<float> out) {
            return on_host::decode_groups(in.data(), std::span(in).subspan(headers), layout, coder, false, out);
          }};
}

Kernels cast_kernels(ValueType type, size_t elements) {
  return {[=](std::span<const float> x, std::vector<uint8_t>& out) {
            out.resize(elements * 2);
            return on_host::narrow(x, type, out.data());
          },
          [=](const std::vector<uint8_t>& in, std::span<float> out) {
            return on_host::widen(in.data(), type, out);
          }};
}

struct CudaCase {
  std::string spec;
  std::function<Kernels(const MessageMeta&)> kernels;
};

Layout by_row(const MessageMeta& meta) { return {meta.rows(), meta.row_size(), meta.row_size()}; }
Layout whole(const MessageMeta& meta) { return {1, meta.elements(), meta.elements()}; }
Layout in_blocks(const MessageMeta& meta, size_t block) {
  return {meta.rows(), meta.row_size(), std::min<size_t>(block, meta.row_size())};
}

const MessageContext kCudaContext{.seed = 5, .boundary = 2, .step = 9, .first_row = 3};

std::vector<CudaCase> quant_cases() {
  std::vector<CudaCase> cases;
  const std::pair<std::string, std::function<Layout(const MessageMeta&)>> scopes[] = {
      {"tensor", whole},
      {"sample", by_row},
      {"block:8", [](const MessageMeta& meta) { return in_blocks(meta, 8); }},
      {"block:64", [](const MessageMeta& meta) { return in_blocks(meta, 64); }},
      {"block:1024", [](const MessageMeta& meta) { return in_blocks(meta, 1024); }}};
  for (unsigned bits = 1; bits <= 8; ++bits) {
    for (const bool stochastic : {false, true}) {
      const std::string rounding = stochastic ? ",rounding=stochastic" : "";
      for (const auto& [scope, layout] : scopes) {
        const std::string spec = "quant:" + std::to_string(bits) + ",scope=" + scope + rounding;
        cases.push_back({spec, [=, layout = layout](const MessageMeta& meta) {
                           const Rounding how{stochastic, make_dither(kCudaContext, meta)};
                           return kernels_of(kernels::cuda::RangeCoder::of(bits, how), layout(meta));
                         }});
        cases.push_back({spec + ",ranges=bf16", [=, layout = layout](const MessageMeta& meta) {
                           const Rounding how{stochastic, make_dither(kCudaContext, meta)};
                           return kernels_of(kernels::cuda::ShortRangeCoder::of(bits, how), layout(meta));
                         }});
        if (bits == 1) continue;
        cases.push_back({spec + ",levels=symmetric", [=, layout = layout](const MessageMeta& meta) {
                           const Rounding how{stochastic, make_dither(kCudaContext, meta)};
                           return kernels_of(kernels::cuda::SymmetricCoder::of(bits, how), layout(meta));
                         }});
      }
    }
  }
  return cases;
}

std::vector<CudaCase> float_cases() {
  std::vector<CudaCase> cases;
  for (const auto& [name, type] : {std::pair("fp16", ValueType::fp16), std::pair("bf16", ValueType::bf16)}) {
    cases.push_back({name, [=](const MessageMeta& meta) { return cast_kernels(type, meta.elements()); }});
  }
  const auto last_dimension = [](const MessageMeta& meta) -> Layout {
    const auto last = meta.shape.size() > 1 ? static_cast<size_t>(meta.shape.back()) : meta.row_size();
    return {meta.elements() / last, last, std::min<size_t>(32, last)};
  };
  for (const std::string name : {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"}) {
    const auto format = *small_float(name);
    if (format.bits == 8) {
      cases.push_back({"fp8:" + name, [=](const MessageMeta& meta) {
                         return kernels_of(kernels::cuda::Fp8Coder::of(format), in_blocks(meta, 128));
                       }});
    }
    cases.push_back({"mx:" + name, [=](const MessageMeta& meta) {
                       return kernels_of(kernels::cuda::MxFloatCoder::of(format), last_dimension(meta));
                     }});
  }
  cases.push_back({"mx:int8", [=](const MessageMeta& meta) {
                     return kernels_of(kernels::cuda::MxIntegerCoder{}, last_dimension(meta));
                   }});
  return cases;
}

/// The codec's payload; nothing where it says that the tensor cannot be sent.
std::optional<std::vector<uint8_t>> payload_of(const Codec& codec, const at::Tensor& x) {
  try {
    const auto bytes = encoded(codec, x, kCudaContext);
    std::vector<uint8_t> payload(bytes.size());
    std::memcpy(payload.data(), bytes.data(), bytes.size());
    return payload;
  } catch (const NumericError&) {
    return std::nullopt;
  }
}

void expect_same_messages(const CudaCase& tested, const NamedTensor& input) {
  const std::string what = tested.spec + ", " + input.name;
  const auto codec = make_codec(tested.spec);
  const at::Tensor x = input.x.contiguous();
  if (x.numel() == 0) return;
  const MessageMeta meta = meta_of(x);
  const Kernels kernels = tested.kernels(meta);
  const auto payload = payload_of(*codec, x);
  std::vector<uint8_t> own;
  const uint32_t faults = kernels.encode(values_of(x), own);
  EXPECT_EQ(faults, payload ? 0U : kernels::cuda::kNotSendable) << what;
  if (!payload) return;
  EXPECT_EQ(own, *payload) << what;
  at::Tensor received = x.clone();
  EXPECT_EQ(kernels.decode(own, {received.data_ptr<float>(), own.empty() ? 0 : meta.elements()}), 0U) << what;
  EXPECT_TRUE(same_bits(received, decoded(*codec, std::as_bytes(std::span(own)), meta, kCudaContext))) << what;
}

/// Tensors with one value that cannot be sent, at several places.
std::vector<NamedTensor> bad_inputs() {
  std::vector<NamedTensor> inputs;
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t place : {0, 70, 149}) {
      const at::Tensor x = normal_tensor({3, 50}, 40);
      x.data_ptr<float>()[place] = bad;
      inputs.push_back({std::to_string(bad) + " at " + std::to_string(place), x});
    }
  }
  return inputs;
}

class CudaPayload : public testing::TestWithParam<CudaCase> {};

TEST_P(CudaPayload, IsTheCodecs) {
  for (const NamedTensor& input : finite_inputs()) expect_same_messages(GetParam(), input);
}

TEST_P(CudaPayload, IsRefusedWhereTheCodecRefusesTheTensor) {
  for (const NamedTensor& input : bad_inputs()) expect_same_messages(GetParam(), input);
}

/// Every byte of a message in turn is changed: what the codec refuses the kernels refuse, and what it takes
/// they read to the same values.
TEST_P(CudaPayload, IsReadAsTheCodecReadsItWhateverTheBytes) {
  const at::Tensor x = normal_tensor({2, 37}, 41);
  const MessageMeta meta = meta_of(x);
  const auto codec = make_codec(GetParam().spec);
  const Kernels kernels = GetParam().kernels(meta);
  const auto payload = *payload_of(*codec, x);
  size_t refused = 0;
  for (size_t place = 0; place < payload.size(); ++place) {
    for (const uint8_t change : {0x01, 0x80, 0x7f, 0xff}) {
      auto bytes = payload;
      bytes[place] ^= change;
      at::Tensor out = x.clone();
      const uint32_t faults = kernels.decode(bytes, {out.data_ptr<float>(), meta.elements()});
      try {
        const at::Tensor expected = decoded(*codec, std::as_bytes(std::span(bytes)), meta, kCudaContext);
        EXPECT_EQ(faults, 0U) << GetParam().spec << ", byte " << place;
        EXPECT_TRUE(same_bits(out, expected)) << GetParam().spec << ", byte " << place;
      } catch (const WireError&) {
        EXPECT_EQ(faults, kernels::cuda::kNotAMessage) << GetParam().spec << ", byte " << place;
        ++refused;
      }
    }
  }
  EXPECT_LT(refused, 4 * payload.size());
}

std::string name_of(const testing::TestParamInfo<CudaCase>& info) {
  std::string name = info.param.spec;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Quant, CudaPayload, testing::ValuesIn(quant_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Floats, CudaPayload, testing::ValuesIn(float_cases()), name_of);

/// The message of one list of bitmaps and one of values, of `topk:P,index=bitmap`.
std::vector<uint8_t> sparse_message(const std::vector<uint8_t>& bitmaps, const std::vector<uint8_t>& values,
                                    size_t groups) {
  std::vector<uint8_t> message(groups);  // code 0: bitmap
  for (size_t i = 0; i < groups; ++i) {
    const auto length = static_cast<uint32_t>(bitmaps.size() / groups);
    for (unsigned byte = 0; byte < 4; ++byte) message.push_back(static_cast<uint8_t>(length >> (8 * byte)));
  }
  message.insert(message.end(), bitmaps.begin(), bitmaps.end());
  message.insert(message.end(), values.begin(), values.end());
  return message;
}

struct SparseCase {
  std::string values;
  ValueType type;
};

class CudaSparsePayload : public testing::TestWithParam<SparseCase> {};

TEST_P(CudaSparsePayload, IsTheCodecs) {
  const auto& [name, type] = GetParam();
  auto inputs = finite_inputs();
  const auto bad = bad_inputs();
  inputs.insert(inputs.end(), bad.begin(), bad.end());
  for (const std::string share : {"0.01", "0.1", "0.5", "0.97"}) {
    const auto codec = make_codec("topk:" + share + ",index=bitmap,values=" + name);
    for (const auto& [input, tensor] : inputs) {
      const at::Tensor x = tensor.contiguous();
      if (x.numel() == 0) continue;
      const MessageMeta meta = meta_of(x);
      const size_t n = meta.row_size();
      const auto k = static_cast<size_t>(std::ceil(std::stod(share) * static_cast<double>(n) - 1e-9));
      if (k == n) continue;
      const size_t bitmap = (n + 7) / 8;
      const size_t list = k * value_size(type);
      std::vector<uint8_t> bitmaps(meta.rows() * bitmap);
      std::vector<uint8_t> values(meta.rows() * list);
      std::vector<float> terms(n);
      const auto all = values_of(x);
      uint32_t faults = 0;
      for (size_t row = 0; row < meta.rows(); ++row) {
        faults |= on_host::write_largest(std::span(all).subspan(row * n, n), {}, terms, k, type,
                                         std::span(bitmaps).subspan(row * bitmap, bitmap),
                                         values.data() + row * list);
      }
      const auto payload = payload_of(*codec, x);
      EXPECT_EQ(faults, payload ? 0U : kernels::cuda::kNotSendable) << codec->spec() << ", " << input;
      if (!payload) continue;
      EXPECT_EQ(sparse_message(bitmaps, values, meta.rows()), *payload) << codec->spec() << ", " << input;
      at::Tensor received = x.clone();
      for (size_t row = 0; row < meta.rows(); ++row) {
        EXPECT_EQ(
            on_host::read_sparse(std::span(bitmaps).subspan(row * bitmap, bitmap), values.data() + row * list,
                                 type, k, /*add=*/false, {received.data_ptr<float>() + row * n, n}),
            0U);
      }
      EXPECT_TRUE(same_bits(received, decoded(*codec, std::as_bytes(std::span(*payload)), meta)))
          << codec->spec() << ", " << input;
    }
  }
}

TEST_P(CudaSparsePayload, IsRefusedWithAnotherNumberOfOnesOrOnesBehindTheEnd) {
  const auto type = GetParam().type;
  std::vector<uint8_t> values(3 * value_size(type));
  std::vector<float> out(13);
  const auto read = [&](std::vector<uint8_t> bitmap) {
    return on_host::read_sparse(bitmap, values.data(), type, 3, /*add=*/false, out);
  };
  EXPECT_EQ(read({0x07, 0x00}), 0U);
  EXPECT_EQ(read({0x01, 0x12}), 0U);
  EXPECT_EQ(read({0x03, 0x00}), kernels::cuda::kNotAMessage);
  EXPECT_EQ(read({0x0f, 0x00}), kernels::cuda::kNotAMessage);
  EXPECT_EQ(read({0x03, 0x20}), kernels::cuda::kNotAMessage);
}

INSTANTIATE_TEST_SUITE_P(Values, CudaSparsePayload,
                         testing::Values(SparseCase{"fp32", ValueType::fp32},
                                         SparseCase{"fp16", ValueType::fp16},
                                         SparseCase{"bf16", ValueType::bf16}),
                         [](const auto& info) { return info.param.values; });

}  // namespace
}  // namespace strait
