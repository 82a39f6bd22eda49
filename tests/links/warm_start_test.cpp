// A codec with a warm start in a link, against PowerSGD in float64 by LibTorch's QR decomposition.

#include "tests/links/pair.h"

namespace strait {
namespace {

using test::Pair;
using test::State;

constexpr int64_t kRowsOfMatrix = 24;
constexpr int64_t kColumnsOfMatrix = 30;

/// Messages that change little from one to the next.
at::Tensor slow_message(uint64_t step) {
  at::manual_seed(11);
  const at::Tensor fixed = at::randn({kRowsOfMatrix, 3}).mm(at::randn({3, kColumnsOfMatrix}));
  const at::Tensor noise = at::randn({kRowsOfMatrix, kColumnsOfMatrix});
  at::manual_seed(100 + step);
  return fixed + 0.3 * noise + 0.05 * at::randn({kRowsOfMatrix, kColumnsOfMatrix});
}

/// One step of a power iteration from where the last one ended.
struct PowerIteration {
  at::Tensor next(const at::Tensor& x) {
    const at::Tensor p = std::get<0>(at::linalg_qr(x.mm(start)));
    start = x.t().mm(p);
    return p.mm(start.t());
  }
  at::Tensor start;  // [columns, rank]
};

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
}

/// The state's start as [columns, rank].
at::Tensor start_of(Pair& pair) { return pair.encoder_state().at("start").t().to(at::kDouble); }

constexpr const char* kWarm = "lowrank:2,warm=yes";

TEST(WarmStart, TheFirstMessageIsTheCodecs) {
  Pair pair("none", kWarm);
  const at::Tensor x = slow_message(0);
  EXPECT_TRUE(at::equal(pair.send(x), make_codec("lowrank:2")->reconstruct(x, {.seed = 3})));
  EXPECT_TRUE(pair.decoder_state().empty()) << "the message says all";
}

TEST(WarmStart, LaterMessagesGoOnFromTheLast) {
  Pair pair("none", kWarm);
  pair.send(slow_message(0));
  PowerIteration definition{start_of(pair)};
  for (uint64_t step = 1; step < 6; ++step) {
    const at::Tensor x = slow_message(step);
    const at::Tensor expected = definition.next(x.to(at::kDouble));
    EXPECT_LE(distance(pair.send(x, 0, false, step), expected), 1e-5 * x.norm().item<double>()) << step;
  }
}

TEST(WarmStart, ComesToTheNearestMatrixOfItsRank) {
  const at::Tensor x = slow_message(0);
  const auto [u, s, v] = at::linalg_svd(x, false);
  const double least = s.narrow(0, 2, s.size(0) - 2).norm().item<double>();
  Pair cold("none", "lowrank:2");
  Pair warm("none", kWarm);
  for (uint64_t step = 0; step < 30; ++step) {
    cold.send(x, 0, false, step);
    warm.send(x, 0, false, step);
  }
  EXPECT_LE(distance(warm.last_received(), x), 1.0001 * least);
  EXPECT_GE(distance(cold.last_received(), x), 1.01 * least);
}

TEST(WarmStart, WithErrorFeedbackIsPowerSgd) {
  Pair pair("ef", kWarm);
  const at::Tensor first = slow_message(0);
  at::Tensor residual = first.to(at::kDouble) - pair.send(first).to(at::kDouble);
  PowerIteration definition{start_of(pair)};
  for (uint64_t step = 1; step < 6; ++step) {
    const at::Tensor x = slow_message(step);
    const at::Tensor sum = x.to(at::kDouble) + residual;
    const at::Tensor expected = definition.next(sum);
    EXPECT_LE(distance(pair.send(x, 0, false, step), expected), 1e-4 * x.norm().item<double>()) << step;
    residual = sum - expected;
  }
  EXPECT_LE(distance(pair.encoder_state().at("residual"), residual), 1e-3 * residual.norm().item<double>());
}

TEST(WarmStart, GoesOnFromStateThatWasSaved) {
  for (const char* feedback : {"none", "ef", "ef21"}) {
    Pair pair(feedback, kWarm);
    for (uint64_t step = 0; step < 3; ++step) pair.send(slow_message(step), 0, false, step);
    Pair other(feedback, kWarm);
    test::load_state(other.encoder(), pair.encoder_state());
    test::load_state(other.decoder(), pair.decoder_state());
    for (uint64_t step = 3; step < 5; ++step) {
      const at::Tensor x = slow_message(step);
      EXPECT_TRUE(at::equal(other.send(x, 0, false, step), pair.send(x, 0, false, step))) << feedback;
    }
  }
}

TEST(WarmStart, EvaluationStartsFromItAndLeavesIt) {
  Pair pair("none", kWarm);
  pair.send(slow_message(0));
  const State before = pair.encoder_state();
  const at::Tensor x = slow_message(1);
  const at::Tensor frozen = pair.send(x, 0, true);
  test::expect_equal(pair.encoder_state(), before);
  EXPECT_TRUE(at::equal(pair.send(x), frozen));
}

TEST(WarmStart, AMessageOfZerosIsNoDeadEnd) {
  Pair pair("none", kWarm);
  pair.send(at::zeros({kRowsOfMatrix, kColumnsOfMatrix}));
  const at::Tensor x = slow_message(0);
  EXPECT_TRUE(at::equal(pair.send(x), make_codec("lowrank:2")->reconstruct(x, {.seed = 3})));
}

TEST(WarmStart, ServesMessagesOfFewerRowsAndOfOtherShapes) {
  Pair pair("none", kWarm);
  pair.send(slow_message(0));
  PowerIteration definition{start_of(pair)};
  const at::Tensor fewer = slow_message(1).narrow(0, 0, 9);
  EXPECT_LE(distance(pair.send(fewer), definition.next(fewer.to(at::kDouble))),
            1e-5 * fewer.norm().item<double>());
  const at::Tensor other = slow_message(1).t().contiguous();
  EXPECT_TRUE(at::equal(pair.send(other), make_codec("lowrank:2")->reconstruct(other, {.seed = 3})));
}

}  // namespace
}  // namespace strait
