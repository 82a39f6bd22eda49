// A message that cannot be sent is refused and leaves the sender as it was, for every link and codec.

#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "strait/codecs/sparsifier.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

using test::Pair;
using test::State;

constexpr int64_t kRows = 5;
constexpr int64_t kWidth = 64;  // which every codec takes
constexpr float kLargest = std::numeric_limits<float>::max();

struct Case {
  std::string feedback;
  std::string codec;
};

/// Every link with every sample of every codec that it can serve.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const auto& feedback : link_samples()) {
    for (const auto& info : codec_list()) {
      for (const auto sample : info.samples) {
        try {
          make_link(sample, feedback);
        } catch (const InputError&) {
          continue;
        }
        all.push_back({feedback, std::string(sample)});
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.feedback + "_" + info.param.codec;
  std::ranges::replace_if(
      name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
  return name;
}

bool same_bits(const State& a, const State& b) {
  return a.size() == b.size() && std::ranges::equal(a, b, [](const auto& left, const auto& right) {
           const at::Tensor x = left.second.contiguous();
           const at::Tensor y = right.second.contiguous();
           return left.first == right.first && x.sizes() == y.sizes() && x.dtype() == y.dtype() &&
                  std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
         });
}

std::vector<std::byte> encoded(Pair& pair, const at::Tensor& x, const MessageContext& context) {
  std::vector<std::byte> space(pair.link().payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  pair.encoder().encode(x, context, out);
  space.resize(out.used());
  return space;
}

/// Refuses x, leaves the state, and continues as a sender that has never met x.
void expect_refused(Pair& pair, Pair& twin, const at::Tensor& x, const MessageContext& context) {
  const State before = pair.encoder_state();
  EXPECT_THROW(encoded(pair, x, context), NumericError);
  EXPECT_TRUE(same_bits(pair.encoder_state(), before));
  EXPECT_TRUE(same_bits(pair.encoder_state(), twin.encoder_state()));
}

/// x with one element of a row replaced.
at::Tensor with(const at::Tensor& x, int64_t row, int64_t element, float value) {
  at::Tensor changed = x.clone();
  changed.view({x.size(0), -1})[row][element] = value;
  return changed;
}

class Refusal : public testing::TestWithParam<Case> {
 protected:
  Pair pair() const { return {GetParam().feedback, GetParam().codec}; }
  MessageContext context(uint64_t step) const {
    return {.seed = 3, .step = step, .ids = ids_, .previous = &previous_};
  }

  at::Tensor previous_;  ///< of the shape of messages, for links that need it

 private:
  std::vector<int64_t> ids_ = {4, 9, 2, 7, 0};
};

TEST_P(Refusal, OfWhatIsNotFiniteLeavesTheState) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  at::manual_seed(1);
  previous_ = at::randn({kRows, 3, kWidth});
  for (const uint64_t sent : {0, 3}) {
    Pair tried = pair();
    Pair twin = pair();
    for (uint64_t step = 0; step < sent; ++step) {
      const at::Tensor x = at::randn({kRows, 3, kWidth});
      EXPECT_EQ(encoded(tried, x, context(step)), encoded(twin, x, context(step)));
    }
    for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
      for (const int64_t row : {int64_t{0}, kRows / 2, kRows - 1}) {
        const int64_t element = at::randint(3 * kWidth, {1}).item<int64_t>();
        SCOPED_TRACE(fmt::format("{} at row {}, element {}, after {} messages", bad, row, element, sent));
        expect_refused(tried, twin, with(at::randn({kRows, 3, kWidth}), row, element, bad), context(7));
      }
    }
    const at::Tensor good = at::randn({kRows, 3, kWidth});
    EXPECT_EQ(encoded(tried, good, context(8)), encoded(twin, good, context(8)));
    EXPECT_TRUE(same_bits(tried.encoder_state(), twin.encoder_state()));
  }
}

/// Messages whose elements are of this size can be sent, one after another; the larger, the nearer an overflow.
float large_for(const std::string& codec) {
  for (const float large : {kLargest / 2, 1e35F}) {  // a sum over the message is finite with the second
    try {
      Pair("none", codec).send(at::full({kRows, kWidth}, large));
      return large;
    } catch (const NumericError&) {
      continue;
    }
  }
  return 30000;  // of fp16
}

/// What a sender keeps under this name for the rows of its message, or for the samples, in float32.
at::Tensor kept_by(const State& state, const std::string& name) {
  if (const auto rows = state.find(name); rows != state.end()) return rows->second;
  const auto samples = state.find(name + ".rows");
  return samples == state.end() ? at::Tensor() : samples->second.view(at::kFloat);
}

/// Where the message is finite but what the link makes of it with its state is not.
TEST_P(Refusal, OfAnOverflowWithTheStateLeavesTheState) {
  const auto& [feedback, codec] = GetParam();
  if (feedback == "none") return;
  at::manual_seed(2);
  const float large = large_for(codec);
  const at::Tensor x = at::rand({kRows, kWidth}) * large;
  previous_ = x;
  Pair tried = pair();
  Pair twin = pair();
  tried.send(x, context(0));
  twin.send(x, context(0));
  // An average moves by a share of a message, too little to bring the difference past float32.
  if (kept_by(tried.encoder_state(), "average").defined()) return;
  // What is taken from the next message, or added to it.
  const at::Tensor residual = kept_by(tried.encoder_state(), "residual");
  const at::Tensor estimate = kept_by(tried.encoder_state(), "estimate");
  const bool differs = !residual.defined();
  const at::Tensor kept = !differs ? residual : estimate.defined() ? estimate : tried.last_received();
  uint64_t step = 1;  // of a message that goes with the state
  while (tried.link().needs_previous() && !tried.encoder().needs_previous(context(step))) ++step;
  int overflows = 0;
  for (int64_t row = 0; row < kRows; ++row) {
    const int64_t element = kept[row].abs().argmax().item<int64_t>();
    const float value = kept[row][element].item<float>();
    if (std::abs(value) < large / 4000) continue;
    ++overflows;
    const float bad = std::copysign(kLargest, differs ? -value : value);
    expect_refused(tried, twin, with(at::rand({kRows, kWidth}), row, element, bad), context(step));
  }
  // Of a codec that loses next to nothing there is nothing to add.
  if (differs || kept.abs().max().item<float>() > large / 1000) {
    EXPECT_GT(overflows, 0);
  }
  const at::Tensor good = at::rand({kRows, kWidth});
  EXPECT_EQ(encoded(tried, good, context(step + 1)), encoded(twin, good, context(step + 1)));
}

INSTANTIATE_TEST_SUITE_P(Links, Refusal, testing::ValuesIn(cases()), name_of);

/// Groups that threads share: some are done when another is refused.
TEST(RefusalOfThreads, LeavesTheState) {
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  for (const char* feedback : {"ef", "ef21"}) {
    for (const bool keeps : {false, true}) {
      at::manual_seed(3);
      Pair tried(feedback, "topk:0.1");
      Pair twin(feedback, "topk:0.1");
      const MessageContext context{.wants_indices = keeps};
      const at::Tensor x = at::randn({8, 16384});
      EXPECT_EQ(encoded(tried, x, context), encoded(twin, x, context));
      for (const int64_t row : {0, 3, 4, 7}) {
        SCOPED_TRACE(fmt::format("{}, row {}", feedback, row));
        expect_refused(tried, twin, with(at::randn({8, 16384}), row, 16000, std::nanf("")), context);
      }
      EXPECT_EQ(encoded(tried, x, context), encoded(twin, x, context));
    }
  }
  at::set_num_threads(threads);
}

TEST(RefusalOfReuse, IsANumericError) {
  const auto link = make_reuse_link(make_codec("topk:0.5"));
  const at::Tensor x = at::ones({2, 4});
  const IndexSet indices{make_codec("topk:0.5")->sparsifier()->shape_of(meta_of(x)), {0b0101, 0b0110}};
  std::vector<std::byte> space(link->payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  for (const int64_t element : {2, 3}) {  // kept, and not kept
    EXPECT_THROW(link->make_encoder()->encode(with(x, 1, element, INFINITY), {.indices = &indices}, out),
                 NumericError)
        << element;
  }
}

/// The store rounds what it keeps, and a sample may not fit its format.
TEST(RefusalOfStore, LeavesAllBuffers) {
  for (const char* format : {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}) {
    StoreOptions store;
    store.format = format;
    Pair tried("aq-sgd", "none", store);
    Pair twin("aq-sgd", "none", store);
    std::vector<int64_t> ids = {0, 1, 2};
    tried.send(at::ones({3, 4}), {.ids = ids});
    twin.send(at::ones({3, 4}), {.ids = ids});
    ids = {3, 0, 1};  // a first visit, then others
    at::Tensor x = at::full({3, 4}, 2.0F);
    x[2][0] = format == std::string("fp32") ? INFINITY : kLargest;
    x[2][1] = -kLargest;
    expect_refused(tried, twin, x, {.ids = ids});
    EXPECT_TRUE(at::equal(tried.send(at::full({3, 4}, 2.0F), {.ids = ids}),
                          twin.send(at::full({3, 4}, 2.0F), {.ids = ids})));
  }
}

}  // namespace
}  // namespace strait
