// What the index sets of TopK cost on what crosses the boundaries of a trained ResNet-18, in bits per element:
// log2 C(n, k), the codes that there are, and ideal codes of models of growing strength.
//
//     bench_index_sets MODEL.safetensors...      of runs over CIFAR-10, which STRAIT_DATA has

#include <ATen/core/ivalue.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "strait/checkpoint/model_file.h"
#include "strait/codecs/codec.h"
#include "strait/data/dataset.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/masked.h"
#include "strait/kernels/select.h"
#include "strait/models/model.h"
#include "strait/models/resnet18.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

constexpr int64_t kBatch = 100;

/// The positions that a sample keeps: planes of rows of `width`.
struct Set {
  size_t n;
  size_t k;
  size_t plane;
  size_t width;
  std::vector<uint64_t> mask;

  bool at(size_t i) const { return (mask[i / 64] >> i % 64 & 1) != 0; }
  size_t count(size_t begin, size_t end) const {
    size_t masked = 0;
    for (size_t i = begin; i < end; ++i) masked += at(i) ? 1 : 0;
    return masked;
  }
};

double log2_choices(size_t n, size_t k) {
  const auto log_factorial = [](size_t m) { return std::lgamma(static_cast<double>(m) + 1); };
  return (log_factorial(n) - log_factorial(k) - log_factorial(n - k)) / std::numbers::ln2;
}

double bound(const Set& set) { return log2_choices(set.n, set.k); }

/// The shorter of bitmap and Rice code, with its five bytes of code and length.
double rice_or_bitmap(const Set& set) {
  std::vector<std::byte> space(kernels::bitmap_size(set.n));
  const auto used = kernels::write_rice(set.mask, kernels::rice_parameter(set.n, set.k), space);
  return 8 * static_cast<double>(5 + used.value_or(space.size()));
}

/// A number of kept positions for every block, then which ones.
double by_block(const Set& set, size_t block) {
  double bits = 0;
  for (size_t begin = 0; begin < set.n; begin += block) {
    const size_t size = std::min(block, set.n - begin);
    bits += log2_choices(size, set.count(begin, begin + size)) + std::log2(static_cast<double>(size + 1));
  }
  return bits;
}

/// What a context has seen, and by it the cost of the next bit (Krichevsky and Trofimov).
struct Adaptive {
  double ones = 0.5;
  double zeros = 0.5;

  double cost(bool bit) {
    double& seen = bit ? ones : zeros;
    const double p = seen / (ones + zeros);
    seen += 1;
    return -std::log2(p);
  }
};

/// Left, above left, above, above right, and the position in the plane before.
size_t neighbours_before(const Set& set, size_t i) {
  size_t context = 0;
  for (const size_t back : {size_t{1}, set.width + 1, set.width, set.width - 1, set.plane}) {
    context = context * 2 + (i >= back && set.at(i - back) ? 1 : 0);
  }
  return context;
}

double by_neighbours(const Set& set) {
  std::vector<Adaptive> contexts(32);
  double bits = 0;
  for (size_t i = 0; i < set.n; ++i) bits += contexts[neighbours_before(set, i)].cost(set.at(i));
  return bits;
}

/// One of ten bands of the share that a plane has left to mark: none, eight of odds, all.
size_t band(size_t left, size_t places) {
  if (left == 0) return 0;
  if (left == places) return 9;
  const double share = static_cast<double>(left) / static_cast<double>(places);
  return static_cast<size_t>(std::clamp(std::log2(share / (1 - share)) / 1.2 + 5, 1.0, 8.0));
}

/// A number of kept positions for every plane, then the neighbours and what is left of that number.
double by_plane_and_neighbours(const Set& set) {
  std::vector<Adaptive> contexts(size_t{10} * 32);
  double bits = 0;
  size_t left = 0;
  for (size_t i = 0; i < set.n; ++i) {
    const size_t of_plane = i % set.plane;
    if (of_plane == 0) {
      left = set.count(i, i + set.plane);
      bits += std::log2(static_cast<double>(set.plane + 1));
    }
    const size_t which = band(left, set.plane - of_plane);
    if (which % 9 != 0) bits += contexts[which * 32 + neighbours_before(set, i)].cost(set.at(i));
    left -= set.at(i) ? 1 : 0;
  }
  return bits;
}

std::vector<Set> sets_of(const at::Tensor& x, double share) {
  const auto plane = static_cast<size_t>(x.size(2) * x.size(3));
  const size_t n = static_cast<size_t>(x.size(1)) * plane;
  const auto k = static_cast<size_t>(std::ceil(share * static_cast<double>(n)));
  kernels::SelectScratch scratch;
  std::vector<Set> sets;
  for (int64_t row = 0; row < x.size(0); ++row) {
    sets.push_back(
        Set{n, k, plane, static_cast<size_t>(x.size(3)), std::vector<uint64_t>(kernels::mask_words(n))});
    kernels::select_largest({x[row].data_ptr<float>(), n}, k, scratch, sets.back().mask);
  }
  return sets;
}

/// Bits of a message that are not values.
double sent(const at::Tensor& x, double share, size_t kept) {
  const auto codec = make_codec(fmt::format("topk:{},index=auto", share));
  return 8 * static_cast<double>(codec->encode(x).nbytes() - sizeof(float) * kept);
}

void report(const std::string& name, const at::Tensor& x) {
  for (const double share : {0.01, 0.05, 0.1, 0.2, 0.3, 0.5}) {
    const auto sets = sets_of(x, share);
    const auto elements = static_cast<double>(x.numel());
    const auto mean = [&](auto cost) {
      double bits = 0;
      for (const auto& set : sets) bits += cost(set);
      return bits / elements;
    };
    const auto blocks = [&](size_t block) {
      return mean([&](const Set& set) { return by_block(set, block); });
    };
    const double before = mean(rice_or_bitmap);
    const double now = sent(x, share, sets.size() * sets[0].k) / elements;
    fmt::print("{:<14} {:>5.2f} {:>8.4f} {:>8.4f} {:>8.4f} {:>+7.1f}% {:>8.4f}", name, share, mean(bound),
               before, now, 100 * (now / before - 1), blocks(sets[0].plane));
    for (const size_t block : {64, 256, 1024, 4096}) fmt::print(" {:>8.4f}", blocks(block));
    fmt::print(" {:>10.4f} {:>8.4f}\n", mean(by_neighbours), mean(by_plane_and_neighbours));
  }
}

/// What crosses the boundaries, and its gradients, of one step of training on the first pictures.
void measure(const std::filesystem::path& file, const std::string& data) {
  const auto weights = read_safetensors(file);
  const std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};
  const auto width = static_cast<int>(weights.tensors.front().second.size(0));
  Model model = make_resnet18(width, 10);
  set_weights(file, weights, model);
  model.train(true);
  DataOptions options;
  options.root = data;
  options.train_limit = kBatch;
  std::vector<int64_t> ids(kBatch);
  std::iota(ids.begin(), ids.end(), 0);
  const Batch batch = load_data(options).train->batch(ids, augmentation_key(0, 0));
  std::vector<at::Tensor> crossing;
  at::Tensor x = batch.inputs;
  for (const auto& stage : cut_into_stages(model, cuts)) {
    x = model.forward(x, stage.begin, stage.end);
    x.retain_grad();
    crossing.push_back(x);
  }
  crossing.pop_back();
  const at::Tensor loss = at::cross_entropy_loss(x, batch.targets);
  loss.backward();
  fmt::print(
      "{}, width {}, loss {:.3f}\n{:<14} {:>5} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>10} "
      "{:>8}\n",
      file.string(), width, loss.item<float>(), "", "kept", "bound", "rice", "auto", "", "plane", "64", "256",
      "1024", "4096", "neighbours", "both");
  for (size_t boundary = 0; boundary < crossing.size(); ++boundary) {
    report(fmt::format("activation {}", boundary), crossing[boundary].detach().contiguous());
    report(fmt::format("gradient {}", boundary), crossing[boundary].grad().contiguous());
  }
}

}  // namespace
}  // namespace strait

int main(int argc, char** argv) {
  using namespace strait;
  const char* data = std::getenv("STRAIT_DATA");
  if (argc == 1 || data == nullptr) {
    fmt::print("bench_index_sets needs STRAIT_DATA and the model.safetensors of runs over CIFAR-10\n");
    return 0;
  }
  configure_runtime(0);
  for (int i = 1; i < argc; ++i) measure(argv[i], data);
}
