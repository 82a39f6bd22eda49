#include "strait/planning/device_bench.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/equal.h>

#include <vector>

#include "strait/base/error.h"
#include "strait/codecs/device_order.h"

namespace strait {
namespace {

const MessageContext kMessage{.seed = 1};

bool are_same(const at::Tensor& a, const at::Tensor& b) {
  // Of bits rather than numbers: -0 is not +0.
  return at::equal(a.contiguous().view(at::kByte), b.contiguous().view(at::kByte));
}

/// Gives what is decoded, on the CPU.
at::Tensor verify(c10::Device device, const Codec& codec, const at::Tensor& x) {
  const at::Tensor payload = codec.encode(x, kMessage);
  const at::Tensor there = codec.encode(x.to(device), kMessage);
  if (!are_same(there.cpu(), payload)) {
    throw Error("codec {}: the payload that is written on {} differs from the CPU's", codec.spec(),
                device.str());
  }
  at::Tensor received = codec.decode(payload, meta_of(x), kMessage);
  if (!are_same(codec.decode(there, meta_of(x), kMessage).cpu(), received)) {
    throw Error("codec {}: the tensor that is read on {} differs from the CPU's", codec.spec(), device.str());
  }
  return received;
}

template <class Work>
double seconds_of(c10::Device device, const Work& work) {
  const auto begin = DeviceMoment::behind_all(device);
  work();
  return begin.seconds_until(DeviceMoment::behind_all(device));
}

}  // namespace

DeviceRates bench_on_device(c10::Device device, const Codec& codec, BenchInput& input,
                            const Repetitions& repetitions) {
  std::vector<at::Tensor> tensors;
  for (int64_t i = 0; i < input.copies(); ++i) tensors.push_back(input.next().to(device));
  const at::Tensor x = input.next();
  DeviceRates rates;
  rates.relative_error = relative_error(x, verify(device, codec, x));

  size_t turn = 0;
  const auto next = [&]() -> const at::Tensor& { return tensors[turn++ % tensors.size()]; };
  const at::Tensor target = at::empty_like(tensors[0]);
  Times copies(2 * repetitions.warm_up);
  Times encoding(repetitions.warm_up);
  Times decoding(repetitions.warm_up);
  at::Tensor payload;
  at::Tensor received;
  repeat(repetitions, [&] {
    copies.add(seconds_of(device, [&] { target.copy_(next()); }));
    encoding.add(seconds_of(device, [&] { payload = codec.encode(next(), kMessage); }));
    copies.add(seconds_of(device, [&] { target.copy_(next()); }));
    decoding.add(seconds_of(device, [&] { received = codec.decode(payload, input.meta(), kMessage); }));
  });
  const auto rate = [&](const Times& times) {
    return static_cast<double>(input.bytes()) / 1e9 / times.median();
  };
  rates.copy_gb_s = rate(copies);
  rates.encode_gb_s = rate(encoding);
  rates.decode_gb_s = rate(decoding);
  rates.encode_copy_ratio = copies.median() / encoding.median();
  rates.decode_copy_ratio = copies.median() / decoding.median();
  rates.bits = 8 * static_cast<double>(payload.numel()) / static_cast<double>(x.numel());
  return rates;
}

}  // namespace strait
