// Times encode and decode of every sample spec of codec_list.def on one thread, on a batch of 100 samples
// of 64 x 32 x 32 (ResNet-18's first boundary), normal and after ReLU. Outputs are reused: encode
// writes into one buffer, and the allocator is told to keep the memory of the tensors that decode returns.
// Every codec is verified before it is timed.
//
// Counters: GB, 10^9 bytes of float32 input a second; memcpies, that rate over the rate at which memcpy
// copies the same bytes, measured in the same run directly before (printed with "/s" all the same); bits,
// the payload's bits an element.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <string>

#include "strait/codecs/codec.h"

namespace strait {
namespace {

at::Tensor make_input(bool relu) {
  at::Tensor x = at::empty({100, 64, 32, 32}, at::kFloat);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  float* const data = x.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) data[i] = relu ? std::max(normal(random), 0.0F) : normal(random);
  return x;
}

/// Bytes a second of copying `x` into memory that has been written before: the best of nine.
double memcpy_rate(const at::Tensor& x) {
  static Buffer target(x.nbytes());
  double best = 0;
  for (int i = 0; i < 9; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    std::memcpy(target.data(), x.data_ptr(), x.nbytes());
    benchmark::ClobberMemory();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (i > 0) best = std::max(best, static_cast<double>(x.nbytes()) / taken.count());
  }
  return best;
}

/// One codec and one input with its message.
struct Subject {
  Subject(std::string_view spec, const at::Tensor& input)
      : codec(make_codec(spec)), x(input), meta(meta_of(input)), payload(codec->payload_size(meta).bound) {
    payload.resize(payload.capacity());
    encode();
  }

  void encode() {
    ByteWriter out(payload.bytes());
    codec->encode(x, {}, out);
    used = out.used();
  }

  at::Tensor decode() const {
    ByteReader in(payload.bytes().first(used));
    return codec->decode(in, meta, {});
  }

  bool is_right() const {
    const at::Tensor got = decode();
    const at::Tensor expected = codec->reconstruct(x, {});
    return std::memcmp(got.data_ptr(), expected.data_ptr(), x.nbytes()) == 0;
  }

  std::shared_ptr<const Codec> codec;
  at::Tensor x;
  MessageMeta meta;
  Buffer payload;
  size_t used = 0;
};

template <class Work>
void time_codec(benchmark::State& state, std::string_view spec, const at::Tensor& x, Work work) {
  Subject subject(spec, x);
  if (!subject.is_right()) return state.SkipWithError("decode(encode(x)) differs from reconstruct(x)");
  const double copy = memcpy_rate(x);
  for (auto _ : state) work(subject);
  const auto bytes = static_cast<double>(x.nbytes());
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GB"] = benchmark::Counter(bytes * runs / 1e9, benchmark::Counter::kIsRate);
  state.counters["memcpies"] = benchmark::Counter(bytes * runs / copy, benchmark::Counter::kIsRate);
  state.counters["bits"] = static_cast<double>(subject.used) * 8 / static_cast<double>(x.numel());
}

void register_all() {
  const std::pair<const char*, at::Tensor> inputs[] = {{"normal", make_input(false)},
                                                       {"relu", make_input(true)}};
  for (const auto& info : codec_list()) {
    for (const auto spec : info.samples) {
      for (const auto& [name, x] : inputs) {
        const std::string suffix = fmt::format("/{}/{}", spec, name);
        benchmark::RegisterBenchmark(fmt::format("encode{}", suffix).c_str(), [spec,
                                                                               x = x](benchmark::State& state) {
          time_codec(state, spec, x, [](Subject& subject) { subject.encode(); });
        })->Unit(benchmark::kMillisecond);
        benchmark::RegisterBenchmark(fmt::format("decode{}", suffix).c_str(), [spec,
                                                                               x = x](benchmark::State& state) {
          time_codec(state, spec, x, [](Subject& subject) { benchmark::DoNotOptimize(subject.decode()); });
        })->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace strait

int main(int argc, char** argv) {
  at::set_num_threads(1);
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  strait::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
