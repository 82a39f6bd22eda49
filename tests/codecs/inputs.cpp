#include "tests/codecs/inputs.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

namespace strait {
namespace {

constexpr float kMost = std::numeric_limits<float>::max();

at::Tensor mapped(std::vector<int64_t> shape, const std::function<float(int64_t)>& value) {
  at::Tensor x = at::empty(shape, at::kFloat);
  for (int64_t i = 0; i < x.numel(); ++i) x.data_ptr<float>()[i] = value(i);
  return x;
}

void add_values(std::vector<NamedTensor>& inputs) {
  const auto normal = normal_tensor({6, 50}, 1);
  inputs.push_back({"normal 2-D", normal});
  inputs.push_back({"after ReLU", normal_tensor({4, 3, 8, 8}, 2).relu()});
  inputs.push_back({"all negative", normal.abs().neg().sub(0.5)});
  inputs.push_back({"constant", at::full({3, 17}, -2.75F)});
  inputs.push_back({"all zero", at::full({3, 33}, 0.0F)});
  inputs.push_back({"all -0", at::full({2, 9}, -0.0F)});
  inputs.push_back({"mixed zeros", mapped({5, 13}, [](int64_t i) { return i % 3 == 0 ? -0.0F : 0.0F; })});
  inputs.push_back({"zeros and few", mapped({5, 40}, [](int64_t i) {
                      return i % 11 == 0 ? -1.0F : (i % 2 == 0 ? -0.0F : 0.0F);
                    })});
  inputs.push_back({"heavy ties", normal_tensor({4, 100}, 3).mul(2).round().div(2)});
  inputs.push_back({"denormals", normal.mul(std::numeric_limits<float>::denorm_min() * 20)});
  inputs.push_back({"one denormal", mapped({1, 20}, [](int64_t i) {
                      return i == 7 ? std::numeric_limits<float>::denorm_min() : 0.0F;
                    })});
  inputs.push_back({"tiny", normal.mul(1e-7)});
  inputs.push_back({"small normals", normal.mul(std::numeric_limits<float>::min())});
  inputs.push_back({"up to fp16's range", mapped({3, 30}, [](int64_t i) { return 65519.99F / (i % 7 + 1); })});
  inputs.push_back(
      {"past fp16's range", mapped({3, 30}, [](int64_t i) { return i == 44 ? -65520.0F : 1.0F; })});
  inputs.push_back({"spikes", mapped({2, 5, 128}, [](int64_t i) {
                      return i % 61 == 0 ? 40.0F
                                         : std::sin(static_cast<float>(i)) / static_cast<float>(i / 128 + 1);
                    })});
  inputs.push_back({"huge", normal.mul(kMost / 8)});
  inputs.push_back({"range close to overflow", mapped({2, 40}, [](int64_t i) {
                      return std::cos(static_cast<float>(i)) * (kMost / 2.0F);
                    })});
  inputs.push_back(
      {"range past overflow", mapped({2, 40}, [](int64_t i) { return i % 2 == 0 ? kMost : -kMost; })});
}

void add_shapes(std::vector<NamedTensor>& inputs) {
  inputs.push_back({"empty", at::empty({0, 7}, at::kFloat)});
  inputs.push_back({"empty samples", at::empty({3, 0}, at::kFloat)});
  inputs.push_back({"one element", at::full({1}, -3.5F)});
  inputs.push_back({"no dimension", at::full({}, 1.25F)});
  inputs.push_back({"1-D", normal_tensor({37}, 4)});
  inputs.push_back({"3-D odd", normal_tensor({3, 7, 11}, 5)});
  inputs.push_back({"4-D", normal_tensor({2, 16, 8, 8}, 6)});
  inputs.push_back({"rows beyond a block", normal_tensor({2, 1537}, 7)});
  inputs.push_back({"one row", normal_tensor({1, 4099}, 8)});
  inputs.push_back({"transposed", normal_tensor({9, 6, 5}, 9).transpose(0, 2)});
  inputs.push_back({"every other column", normal_tensor({8, 30}, 10).slice(1, 0, 30, 2)});
  inputs.push_back({"expanded", normal_tensor({1, 21}, 11).expand({4, 21})});
  inputs.push_back(
      {"channels last", normal_tensor({2, 5, 4, 3}, 12).contiguous(at::MemoryFormat::ChannelsLast)});
}

}  // namespace

std::vector<NamedTensor> finite_inputs() {
  std::vector<NamedTensor> inputs;
  add_values(inputs);
  add_shapes(inputs);
  return inputs;
}

at::Tensor normal_tensor(std::vector<int64_t> shape, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.2F, 1.0F);
  return mapped(std::move(shape), [&](int64_t) { return normal(random); });
}

std::vector<float> values_of(const at::Tensor& x) {
  const at::Tensor dense = x.contiguous();
  return {dense.data_ptr<float>(), dense.data_ptr<float>() + dense.numel()};
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const auto left = values_of(a);
  const auto right = values_of(b);
  if (a.sizes() != b.sizes()) return false;
  return left.empty() || std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
}

std::vector<std::byte> encoded(const Codec& codec, const at::Tensor& x, const MessageContext& context) {
  const at::Tensor payload = codec.encode(x, context);
  const auto bytes =
      std::as_bytes(std::span(payload.data_ptr<uint8_t>(), static_cast<size_t>(payload.numel())));
  return {bytes.begin(), bytes.end()};
}

at::Tensor decoded(const Codec& codec, std::span<const std::byte> payload, const MessageMeta& meta,
                   const MessageContext& context) {
  ByteReader in(payload);
  return codec.read(in, meta, context).tensor;
}

at::Tensor received(const std::string& spec, const at::Tensor& x, const MessageContext& context) {
  const auto codec = make_codec(spec);
  return decoded(*codec, encoded(*codec, x, context), meta_of(x), context);
}

}  // namespace strait
