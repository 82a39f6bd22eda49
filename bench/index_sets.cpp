#pragma GCC diagnostic ignored "-Wunused-but-set-variable"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
// What the index sets of TopK cost on the tensors of real training: today's codes, and ideal code lengths of
// models of growing strength, in bits an element.
//
//     bench_index_sets [MODEL.safetensors [batches]]      pictures of CIFAR-10 under STRAIT_DATA

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "strait/base/error.h"
#include "strait/data/dataset.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/marked.h"
#include "strait/kernels/select.h"
#include "strait/models/model.h"
#include "strait/train/loss.h"
#include "strait/train/model_file.h"
#include "strait/train/runtime.h"

namespace strait {
namespace {

constexpr int64_t kBatch = 100;
constexpr size_t kHeaderBits = 40;

/// The index set of one sample as it lies in memory: C planes of H rows of W elements.
struct Set {
  size_t channels;
  size_t height;
  size_t width;
  size_t k;
  std::vector<uint64_t> mask;

  size_t plane() const { return height * width; }
  size_t n() const { return channels * plane(); }
  bool at(size_t i) const { return (mask[i / 64] >> i % 64 & 1) != 0; }
};

double log2_choices(size_t n, size_t k) {
  const auto factorial = [](size_t m) { return std::lgamma(static_cast<double>(m) + 1); };
  return (factorial(n) - factorial(k) - factorial(n - k)) / std::numbers::ln2;
}

size_t marked_in(const Set& set, size_t begin, size_t end) {
  size_t count = 0;
  for (size_t i = begin; i < end; ++i) count += set.at(i) ? 1 : 0;
  return count;
}

double bound(const Set& set) { return log2_choices(set.n(), set.k); }

double sent_now(const Set& set) {
  const unsigned r = kernels::rice_parameter(set.n(), set.k);
  std::vector<std::byte> space(kernels::bitmap_size(set.n()));
  const auto rice = kernels::write_rice(set.mask, r, space);
  return static_cast<double>(8 * rice.value_or(space.size()) + kHeaderBits);
}

/// Enumerates each block's subsets, after its count.
double by_block(const Set& set, size_t block) {
  double bits = 0;
  for (size_t begin = 0; begin < set.n(); begin += block) {
    const size_t size = std::min(block, set.n() - begin);
    const size_t count = marked_in(set, begin, begin + size);
    bits += log2_choices(size, count) + std::log2(static_cast<double>(size + 1));
  }
  return bits;
}

/// A bit's probability from those before in its context (Krichevsky and Trofimov).
struct Adaptive {
  double ones = 0.4;
  double zeros = 0.4;
  double cost(bool bit) {
    const double p = (bit ? ones : zeros) / (ones + zeros);
    (bit ? ones : zeros) += 1;
    return -std::log2(p);
  }
};

unsigned neighbours(const Set& set, size_t i) {
  const size_t w = set.width;
  const size_t place = i % set.plane();
  const size_t x = place % w;
  const bool row_above = place >= w;
  unsigned context = 0;
  if (x > 0 && set.at(i - 1)) context |= 1;
  if (row_above && x > 0 && set.at(i - w - 1)) context |= 2;
  if (row_above && set.at(i - w)) context |= 4;
  if (row_above && x + 1 < w && set.at(i - w + 1)) context |= 8;
  if (i >= set.plane() && set.at(i - set.plane())) context |= 16;
  return context;
}

/// The place in 8 bands of what is left to mark of a channel.
unsigned band(size_t left, size_t places) {
  const double share = static_cast<double>(left) / static_cast<double>(places);
  if (left == 0) return 0;
  if (left == places) return 9;
  const double odds = std::log2(share / (1 - share));
  return static_cast<unsigned>(std::clamp(odds / 1.2 + 5.0, 1.0, 8.0));
}

double by_context(const Set& set, bool channel_counts) {
  std::vector<Adaptive> contexts(32 * 10);
  double bits = 0;
  for (size_t begin = 0; begin < set.n(); begin += set.plane()) {
    size_t left = marked_in(set, begin, begin + set.plane());
    if (channel_counts) bits += std::log2(static_cast<double>(set.plane() + 1));
    for (size_t i = begin; i < begin + set.plane(); ++i) {
      const unsigned group = channel_counts ? band(left, begin + set.plane() - i) : 1;
      const bool bit = set.at(i);
      if (channel_counts && (group == 0 || group == 9)) continue;
      bits += contexts[group * 32 + neighbours(set, i)].cost(bit);
      left -= bit ? 1 : 0;
    }
  }
  return bits;
}

/// left only / recent-density contexts
double by_recent(const Set& set, int shift) {
  std::vector<Adaptive> contexts(64 * 2);
  double bits = 0;
  double d = static_cast<double>(set.k) / set.n();
  bool last = false;
  for (size_t i = 0; i < set.n(); ++i) {
    const double odds = std::log2(d / (1 - d));
    const auto c = static_cast<unsigned>(std::clamp(odds + 10, 0.0, 20.0));
    const bool bit = set.at(i);
    bits += contexts[c * 2 + last].cost(bit);
    d += ((bit ? 1.0 : 0.0) - d) / (1 << shift);
    d = std::clamp(d, 1e-4, 1 - 1e-4);
    last = bit;
  }
  return bits;
}

/// Rice with the gap mean of late as the parameter: sum of `memory` gaps at most.
double adaptive_rice(const Set& set, unsigned memory, bool complement) {
  size_t bits = kHeaderBits;
  const double share = static_cast<double>(set.k) / set.n();
  double sum = (1 - share) / share * 4, count = 4;
  bool value = true;
  (void)complement;
  size_t expected = 0;
  for (size_t i = 0; i < set.n(); ++i) {
    if (set.at(i) != value) continue;
    const size_t gap = i - expected;
    unsigned r = 0;
    while (count * (1 << r) * 1.0 < sum * 0.7) ++r;
    bits += (gap >> r) + 1 + r;
    sum += static_cast<double>(gap);
    count += 1;
    if (count >= memory) { sum /= 2; count /= 2; }
    expected = i + 1;
  }
  return static_cast<double>((bits + 7) / 8 * 8);
}

/// Blocks of B positions: a byte (count), then what is shortest of nothing, bitmap, Rice of ones, Rice of zeros.
double block_rice(const Set& set, size_t block) {
  size_t bits = kHeaderBits;
  for (size_t begin = 0; begin < set.n(); begin += block) {
    const size_t size = std::min(block, set.n() - begin);
    const size_t count = marked_in(set, begin, begin + size);
    bits += std::bit_width(block);
    if (count == 0 || count == size) continue;
    size_t best = size;
    for (const bool value : {true, false}) {
      const size_t c = value ? count : size - count;
      const unsigned r = kernels::rice_parameter(size, c);
      size_t used = 0;
      size_t expected = begin;
      for (size_t i = begin; i < begin + size; ++i) {
        if (set.at(i) != value) continue;
        used += ((i - expected) >> r) + 1 + r;
        expected = i + 1;
      }
      best = std::min(best, used + 1);
    }
    bits += best;
  }
  return static_cast<double>((bits + 7) / 8 * 8);
}

/// rice with one parameter for each channel, chosen best, 4 bits
double channel_rice(const Set& set, size_t block) {
  size_t bits = kHeaderBits;
  for (size_t begin = 0; begin < set.n(); begin += block) {
    const size_t size = std::min(block, set.n() - begin);
    size_t best = size, ones = 0;
    for (unsigned r = 0; r < 12; ++r) {
      size_t used = 0;
      ones = 0;
      size_t expected = begin;
      for (size_t i = begin; i < begin + size; ++i) {
        if (!set.at(i)) continue;
        ++ones;
        used += ((i - expected) >> r) + 1 + r;
        expected = i + 1;
      }
      used += ((begin + size - expected) >> r) + 1;  // the end as a gap past it
      best = std::min(best, used);
    }
    bits += 4 + (ones == 0 ? 0 : best);
  }
  return static_cast<double>((bits + 7) / 8 * 8);
}

/// Runs of zeros and runs of ones by turns, Rice with adaptive parameters.
double run_rice(const Set& set) {
  size_t bits = kHeaderBits;
  double sum[2] = {8, 8}, count[2] = {4, 4};
  size_t i = 0;
  bool value = false;
  while (i < set.n()) {
    size_t run = 0;
    while (i < set.n() && set.at(i) == value) ++run, ++i;
    const size_t gap = run == 0 ? 0 : run - (bits == kHeaderBits ? 0 : 1);
    unsigned r = 0;
    while (count[value] * (1 << r) < sum[value] * 0.7) ++r;
    bits += (gap >> r) + 1 + r;
    sum[value] += gap;
    count[value] += 1;
    if (count[value] >= 32) { sum[value] /= 2; count[value] /= 2; }
    value = !value;
  }
  return static_cast<double>((bits + 7) / 8 * 8);
}

Set transposed(const Set& set) {  // channels innermost
  Set out{1, set.plane(), set.channels, set.k, std::vector<uint64_t>(set.mask.size())};
  for (size_t c = 0; c < set.channels; ++c) {
    for (size_t p = 0; p < set.plane(); ++p) {
      const size_t to = p * set.channels + c;
      if (set.at(c * set.plane() + p)) out.mask[to / 64] |= uint64_t{1} << to % 64;
    }
  }
  return out;
}

/// For all sets of a message: contexts / channel densities whose probabilities are known (sent once).
double batch_channels(const std::vector<Set>& sets) {
  const auto& first = sets[0];
  std::vector<size_t> ones(first.channels);
  for (const auto& set : sets) {
    for (size_t c = 0; c < set.channels; ++c) ones[c] += marked_in(set, c * set.plane(), (c + 1) * set.plane());
  }
  double bits = 0;
  const double places = static_cast<double>(sets.size() * first.plane());
  for (const size_t o : ones) {
    const double p = o / places;
    if (p > 0 && p < 1) bits -= places * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
    bits += 16;
  }
  return bits + 40.0 * sets.size();
}

double batch_positions(const std::vector<Set>& sets) {
  double bits = 0;
  for (size_t i = 0; i < sets[0].n(); ++i) {
    double o = 0;
    for (const auto& set : sets) o += set.at(i) ? 1 : 0;
    const double p = o / sets.size();
    if (p > 0 && p < 1) bits -= sets.size() * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
    bits += 6.65;
  }
  return bits;
}

double batch_contexts(const std::vector<Set>& sets, bool channel) {
  const size_t channels = sets[0].channels;
  std::vector<Adaptive> contexts(32 * (channel ? channels : 1));
  double bits = 0;
  for (const auto& set : sets) {
    for (size_t i = 0; i < set.n(); ++i) {
      bits += contexts[(channel ? i / set.plane() * 32 : 0) + neighbours(set, i)].cost(set.at(i));
    }
  }
  return bits;
}


/// Cost of class sequences: [0] KT ideal, [1] Rice of the rarer symbol or raw, plus header bits for each class used
struct Cost { double ideal, rice; };
Cost cost_of(const std::vector<std::vector<bool>>& classes, double header) {
  Cost total{0, kHeaderBits};
  for (const auto& c : classes) {
    total.rice += header;
    if (c.empty()) continue;
    Adaptive a;
    size_t ones = 0;
    for (bool b : c) { total.ideal += a.cost(b); ones += b; }
    double best = c.size();
    for (bool value : {true, false}) {
      const size_t k = value ? ones : c.size() - ones;
      if (k == 0) { best = 0; break; }
      const unsigned r = kernels::rice_parameter(c.size(), k);
      double used = 0; size_t gap = 0;
      for (bool b : c) { if (b == value) { used += (gap >> r) + 1 + r; gap = 0; } else ++gap; }
      best = std::min(best, used);
    }
    total.rice += best;
  }
  return total;
}
bool neighbour(const Set& s, size_t i, int dy, int dx, bool wrap = true) {
  const int64_t x = i % s.width, y = i / s.width;
  if (!wrap) {
    const int64_t row = y % s.height;
    if (x + dx < 0 || x + dx >= (int64_t)s.width || row + dy < 0 || row + dy >= (int64_t)s.height) return false;
  }
  const int64_t j = (int64_t)i + dy * (int64_t)s.width + dx;
  return j >= 0 && j < (int64_t)s.n() && s.at(j);
}
Cost raster(const Set& s, int kind, double header) {
  std::vector<std::vector<bool>> classes(64);
  for (size_t i = 0; i < s.n(); ++i) {
    const bool w = kind != 1;
    const int L = neighbour(s, i, 0, -1, w), U = neighbour(s, i, -1, 0, w), UL = neighbour(s, i, -1, -1, w), UR = neighbour(s, i, -1, 1, w);
    const int LL = neighbour(s, i, 0, -2, w), UU = neighbour(s, i, -2, 0, w);
    int c = 0;
    if (kind <= 1) c = L | U << 1 | UL << 2 | UR << 3;
    if (kind == 2) c = L | U << 1;
    if (kind == 3) c = L + U * 2 + (UL + UR) * 4;
    if (kind == 4) c = L | U << 1 | UL << 2 | UR << 3 | LL << 4 | UU << 5;
    if (kind == 5) c = L + U + UL + UR;
    if (kind == 6) c = 2 * L + 2 * U + UL + UR;
    classes[c].push_back(s.at(i));
  }
  return cost_of(classes, header);
}
/// rows in order; even columns from the row above, odd ones from left, right and the row above
Cost comb(const Set& s, int kind, double header) {
  std::vector<std::vector<bool>> classes(64);
  for (int odd : {0, 1}) for (size_t i = odd; i < s.n(); i += 2) {
    const int L = neighbour(s, i, 0, -1), R = neighbour(s, i, 0, 1), U = neighbour(s, i, -1, 0), UL = neighbour(s, i, -1, -1), UR = neighbour(s, i, -1, 1);
    const int LL = neighbour(s, i, 0, -2), UU = neighbour(s, i, -2, 0);
    int c = 0;
    if (kind == 0) c = odd ? 32 + (L + R) + 3 * U + 6 * (UL + UR) : U + 2 * (UL + UR);
    if (kind == 1) c = odd ? 32 + L + R + U : U * 2 + UL + UR;
    if (kind == 2) c = odd ? 32 + L + R + U : U + 2 * UL + 4 * UR + 8 * LL + 16 * UU;
    if (kind == 3) c = odd ? 32 + 2 * (L + R + U) + UL + UR : U * 2 + UL + UR;
    classes[c].push_back(s.at(i));
  }
  return cost_of(classes, header);
}
/// recursive interlacing
Cost quincunx(const Set& s, unsigned levels, bool together, double header) {
  std::vector<std::vector<bool>> classes(64);
  for (size_t i = 0; i < s.n(); ++i) {
    const int x = i % s.width, y = i / s.width;
    unsigned l = 0;
    while (l < levels && x % (2 << l) == 0 && y % (2 << l) == 0) ++l;
    if (l == levels) { classes[0].push_back(s.at(i)); continue; }
    const int d = 1 << l;
    const bool ox = x % (2 * d), oy = y % (2 * d);
    const int diag = neighbour(s, i, -d, -d) + neighbour(s, i, -d, d) + neighbour(s, i, d, -d) + neighbour(s, i, d, d);
    const int orth = neighbour(s, i, -d, 0) + neighbour(s, i, d, 0) + neighbour(s, i, 0, d) + neighbour(s, i, 0, -d);
    const bool corner = ox && oy;
    const int pass = corner ? 0 : 1;
    classes[1 + (together ? 0 : l * 10) + pass * 5 + (corner ? diag : orth)].push_back(s.at(i));
  }
  return cost_of(classes, header);
}

/// exact size of a code with derived choices in one bit stream
double exact(const std::vector<std::vector<bool>>& classes) {
  size_t bits = 0;
  for (const auto& c : classes) {
    if (c.empty()) continue;
    const size_t n = c.size();
    bits += std::bit_width(n);
    const size_t ones = std::count(c.begin(), c.end(), true);
    const bool value = ones * 2 <= n;
    const size_t k = value ? ones : n - ones;
    if (k == 0) continue;
    const double s0 = double(n - k) / n;
    const unsigned r = kernels::rice_parameter(n, k);
    const double s = std::pow(s0, std::ldexp(1.0, r));
    if (k * (1 + r + s / (1 - s)) >= n) { bits += n; continue; }
    size_t gap = 0;
    for (bool b : c) { if (b == value) { bits += (gap >> r) + 1 + r; gap = 0; } else ++gap; }
  }
  return static_cast<double>((bits + 7) / 8 * 8 + kHeaderBits);
}
double quin(const Set& s, unsigned levels, int kind) {
  std::vector<std::vector<bool>> classes(200);
  for (size_t i = 0; i < s.n(); ++i) {
    const int x = i % s.width, y = i / s.width;
    unsigned l = 0;
    while (l < levels && x % (2 << l) == 0 && y % (2 << l) == 0) ++l;
    if (l == levels) { classes[0].push_back(s.at(i)); continue; }
    const int d = 1 << l;
    const bool corner = (x % (2 * d)) && (y % (2 * d));
    const int diag = neighbour(s, i, -d, -d) + neighbour(s, i, -d, d) + neighbour(s, i, d, -d) + neighbour(s, i, d, d);
    const int V = neighbour(s, i, -d, 0) + neighbour(s, i, d, 0), H = neighbour(s, i, 0, d) + neighbour(s, i, 0, -d);
    int c = corner ? diag : V + H;
    if ((kind == 1 && l > 0) || kind == 2) c = c == 0 ? 0 : c < 3 ? 1 : 2;
    if (kind == 3 && !corner) c = V * 3 + H;
    if (kind == 4) {  // two neighbours of three classes: corner: UL+DR... 
      c = corner ? diag : V * 3 + H;
      if (l > 0) c = (corner ? diag : V + H) == 0 ? 0 : (corner ? diag : V + H) < 3 ? 1 : 2;
    }
    if (kind == 5) { // odd-row / odd col parts apart
      c = (corner ? diag : V + H) + 6 * (y % (2 * d) != 0);
    }
    if (kind == 6) c = c == 0 ? 0 : c == 1 ? 1 : 2;
    if (kind == 7) c = c == 0 ? 0 : c == 1 ? 1 : c == 2 ? 2 : 3;
    classes[1 + l * 40 + corner * 20 + c].push_back(s.at(i));
  }
  return exact(classes);
}
double raster_parity(const Set& s, int kind) {
  std::vector<std::vector<bool>> classes(64);
  for (size_t i = 0; i < s.n(); ++i) {
    const bool w = true;
    const int L = neighbour(s, i, 0, -1, w), U = neighbour(s, i, -1, 0, w), UL = neighbour(s, i, -1, -1, w), UR = neighbour(s, i, -1, 1, w);
    const int x = i % s.width, y = i / s.width;
    int c = kind == 0 ? (L | U << 1 | UL << 2 | UR << 3) : L | U << 1 | (UL + UR > 0) << 2;
    c |= (x & 1) << 4 | (y & 1) << 5;
    classes[c].push_back(s.at(i));
  }
  return exact(classes);
}
std::vector<Set> sets_of(const at::Tensor& tensor, double share) {
  std::vector<Set> sets;
  const auto dim = [&](int64_t d) { return static_cast<size_t>(tensor.size(d)); };
  const size_t n = dim(1) * dim(2) * dim(3);
  kernels::SelectScratch scratch;
  for (size_t s = 0; s < dim(0); ++s) {
    Set set{dim(1), dim(2), dim(3), static_cast<size_t>(std::ceil(share * n)), std::vector<uint64_t>(kernels::mask_words(n))};
    std::vector<float> kept(set.k);
    kernels::select_largest({tensor.data_ptr<float>() + s * n, n}, scratch, set.mask, kept);
    sets.push_back(std::move(set));
  }
  return sets;
}

void report(const std::string& name, const at::Tensor& tensor) {
  const double zeros = 1 - static_cast<double>(tensor.count_nonzero().item<int64_t>()) / tensor.numel();
  fmt::print("{} {}x{}x{} zeros {:.3f}\n", name, tensor.size(1), tensor.size(2), tensor.size(3), zeros);
  for (const double share : {0.02, 0.1, 0.3}) {
    const auto sets = sets_of(tensor, share);
    const double elements = tensor.numel();
    const auto mean = [&](auto cost) {
      double bits = 0;
      for (const auto& set : sets) bits += cost(set);
      return bits / elements;
    };
    const double base = mean(bound);
    const double now = mean(sent_now);
    fmt::print("  {:.2f} bound {:.4f} now {:.4f} |", share, base, now);
    const auto show = [&](const char* label, double v) { fmt::print(" {} {:+.1f}", label, 100 * (v / now - 1)); };
    const size_t plane = sets[0].plane();

    const auto show2 = [&](const char* label, auto cost) {
      double ideal = 0, rice = 0;
      for (const auto& set : sets) { const Cost c = cost(set); ideal += c.ideal; rice += c.rice; }
      fmt::print(" {} {:+.1f}/{:+.1f}", label, 100 * (ideal / elements / now - 1), 100 * (rice / elements / now - 1));
    };

    for (unsigned l = 1; l <= 3; ++l)
    for (int k = 0; k < 8; ++k) show(fmt::format("{}q{}", k ? "" : "\n      ", l * 10 + k).c_str(), mean([&](const Set& s) { return std::min(quin(s, l, k), sent_now(s)); }));
    show("rp", mean([&](const Set& s) { return raster_parity(s, 0); }));
    show("rp", mean([&](const Set& s) { return raster_parity(s, 1); }));
    fmt::print("\n");
  }
}

void measure(const char* file) {
  const auto weights = read_safetensors(file);
  const int width = static_cast<int>(weights.tensors.front().second.size(0));
  const std::vector<std::string> cuts = {"layer1", "layer2", "layer3"};
  Model model = make_model({"resnet18", width, cuts}, 10);
  set_weights(file, weights, model);
  model.train(true);
  DataOptions options;
  options.root = std::getenv("STRAIT_DATA");
  options.train_limit = 1000;
  const auto data = load_data(options);
  std::vector<int64_t> ids(kBatch);
  std::iota(ids.begin(), ids.end(), 300);
  const auto batch = data.train->batch(ids, 1);
  const auto stages = cut_into_stages(model, cuts);
  at::Tensor x = batch.inputs;
  std::vector<at::Tensor> crossing;
  for (const auto& stage : stages) {
    x = model.forward(x, stage.begin, stage.end);
    if (stage.end == model.layers.size()) break;
    x.retain_grad();
    crossing.push_back(x);
  }
  const at::Tensor loss = torch::nn::functional::cross_entropy(x, batch.targets);
  loss.backward();
  fmt::print("{} width {} loss {:.3f}\n", file, width, loss.item<float>());
  for (size_t b = 0; b < crossing.size(); ++b) {
    report(fmt::format("act {}", b), crossing[b].detach().contiguous());
    report(fmt::format("grad {}", b), crossing[b].grad().contiguous());
  }
}

}  // namespace
}  // namespace strait

int main(int argc, char** argv) {
  using namespace strait;
  configure_runtime(0);
  for (int i = 1; i < argc; ++i) measure(argv[i]);
}
