// What test samples cross a boundary as, in each mode of evaluation, against the definitions in plain tensor
// operations; and that training hears nothing of it.

#include "strait/boundary/boundary.h"

#include "tests/links/pair.h"
#include "tests/support/largest.h"

namespace strait {
namespace {

using test::expect_equal;
using test::largest;
using test::State;
using test::state_of;

constexpr const char* kCodec = "topk:0.25";
constexpr int64_t kRows = 4;
constexpr int64_t kElements = 12;

const std::vector<int64_t> kIds = {3, 1, 4, 5};

at::Tensor message(int64_t rows = kRows) { return at::randn({rows, kElements}); }

/// A boundary with both endpoints here, or between two processes.
class Cut {
 public:
  explicit Cut(const std::string& feedback, bool one_process = true) {
    CompressionOptions options;
    options.activations = {kCodec, feedback};
    options.gradients = {kCodec, "ef"};
    if (one_process) {
      ends_.emplace_back("cut", uint16_t{0}, links_of(options, "cut"), 0, BoundaryEndpoints::Local{});
    } else {
      ends_.emplace_back("cut", uint16_t{0}, links_of(options, "cut"), 0,
                         BoundaryEndpoints::Local{.upstream = true, .downstream = false});
      ends_.emplace_back("cut", uint16_t{0}, links_of(options, "cut"), 0,
                         BoundaryEndpoints::Local{.upstream = false, .downstream = true});
    }
  }

  at::Tensor send(const at::Tensor& x, MessageMode mode) {
    const MessageContext context{.seed = 7, .step = step_++, .ids = mode.training ? kIds : kNone};
    Buffer frame = ends_.front().activations.sender->encode(x, context, mode);
    return ends_.back().activations.receiver->decode(std::move(frame), meta_of(x), context, mode);
  }
  at::Tensor train(const at::Tensor& x) { return send(x, {}); }
  at::Tensor evaluate(const at::Tensor& x, EvaluationMode mode) {
    return send(x, {.training = false, .compressed = mode != EvaluationMode::off, .evaluation = mode});
  }

  State state() {
    State all;
    for (auto& end : ends_) all.merge(state_of(end));
    return all;
  }
  std::vector<BoundaryEndpoints>& ends() { return ends_; }

 private:
  inline static const std::vector<int64_t> kNone;
  std::vector<BoundaryEndpoints> ends_;
  uint64_t step_ = 0;
};

/// The rows of the state of that name, zeros where there are none yet.
at::Tensor rows_of(const State& state, const std::string& name, int64_t rows) {
  const auto found = state.find(name);
  if (found == state.end()) return at::zeros({rows, kElements});
  const at::Tensor more = at::zeros({rows, kElements});
  return at::cat({found->second, more}).narrow(0, 0, rows);
}

/// What the receiver sees of a test message when the state stays as it is.
at::Tensor frozen(const std::string& feedback, const at::Tensor& x, const State& state) {
  constexpr int64_t kKept = 3;  // of 12
  const at::Tensor residual = rows_of(state, "cut.activations.sender.residual", x.size(0));
  const at::Tensor estimate = rows_of(state, "cut.activations.receiver.estimate", x.size(0));
  if (feedback == "ef") return largest(x + residual, kKept);
  if (feedback == "ef21") return estimate + largest(x - estimate, kKept);
  if (feedback == "ef-mixed") return largest(x, 2) + largest(residual, 1);
  if (feedback == "aq-sgd") return x;  // a first visit
  return largest(x, kKept);
}

class EveryFeedback : public testing::TestWithParam<const char*> {
 protected:
  /// After some steps of training, the same ones at every call.
  Cut trained(bool one_process = true) {
    at::manual_seed(1);
    Cut cut(GetParam(), one_process);
    for (int step = 0; step < 3; ++step) cut.train(message());
    return cut;
  }
  /// Whether there is a state for evaluation to move.
  bool moves() { return Cut(GetParam()).ends()[0].activations.sender->link().slots() == Slots::rows; }
};

TEST_P(EveryFeedback, OffPlainAndFrozenAreWhatTheyAreDefinedAs) {
  for (const bool one_process : {true, false}) {
    Cut cut = trained(one_process);
    const State before = cut.state();
    for (const int64_t rows : {kRows, int64_t{2}, int64_t{9}}) {  // 9: more than training has had
      const at::Tensor x = message(rows);
      EXPECT_TRUE(at::equal(cut.evaluate(x, EvaluationMode::off), x));
      EXPECT_TRUE(at::equal(cut.evaluate(x, EvaluationMode::plain), largest(x, 3)));
      EXPECT_TRUE(at::equal(cut.evaluate(x, EvaluationMode::frozen), frozen(GetParam(), x, before))) << rows;
    }
    expect_equal(cut.state(), before);
  }
}

TEST_P(EveryFeedback, LiveGoesOnAsTrainingWould) {
  for (const bool one_process : {true, false}) {
    Cut cut = trained(one_process);
    Cut twin = trained(one_process);
    at::manual_seed(2);
    HeldState held(cut.ends());
    for (int i = 0; i < 3; ++i) {
      const at::Tensor x = message();
      const at::Tensor expected = moves() ? twin.train(x) : frozen(GetParam(), x, {});
      EXPECT_TRUE(at::equal(cut.evaluate(x, EvaluationMode::live), expected)) << i;
    }
  }
}

TEST_P(EveryFeedback, TheStateComesBackBitForBitAndTrainingGoesOn) {
  for (const bool one_process : {true, false}) {
    Cut cut = trained(one_process);
    Cut undisturbed = trained(one_process);
    const State before = cut.state();
    HeldState held(cut.ends());
    for (const int64_t rows : {kRows, int64_t{9}}) cut.evaluate(message(rows), EvaluationMode::live);
    bool moved = false;
    for (const auto& [name, value] : cut.state()) moved |= !at::equal(value, before.at(name));
    EXPECT_EQ(moved, moves());
    held.put_back();
    expect_equal(cut.state(), before);
    EXPECT_EQ(cut.ends()[0].activations.sender->take_traffic().messages, 3U) << "those of training";
    for (int i = 0; i < 3; ++i) {
      const at::Tensor x = message();
      EXPECT_TRUE(at::equal(cut.train(x), undisturbed.train(x)));
    }
    expect_equal(cut.state(), undisturbed.state());
  }
}

TEST_P(EveryFeedback, WhatHasNoStateYetComesBackWithoutAny) {
  Cut cut(GetParam());
  HeldState held(cut.ends());
  cut.evaluate(message(), EvaluationMode::live);
  held.put_back();
  EXPECT_TRUE(cut.state().empty());
}

INSTANTIATE_TEST_SUITE_P(Links, EveryFeedback,
                         testing::Values("none", "ef", "ef21", "ef-mixed", "aq-sgd", "ef21,slots=sample"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == ',' || c == '='; });
                           return name;
                         });

TEST(Boundary, EndsThatScoreInOtherModesNoticeIt) {
  for (const auto& [sent, expected] : {std::pair(EvaluationMode::plain, EvaluationMode::frozen),
                                       std::pair(EvaluationMode::frozen, EvaluationMode::plain),
                                       std::pair(EvaluationMode::off, EvaluationMode::live)}) {
    Cut cut("ef21");
    const at::Tensor x = message();
    const auto mode = [](EvaluationMode evaluation) {
      return MessageMode{
          .training = false, .compressed = evaluation != EvaluationMode::off, .evaluation = evaluation};
    };
    Buffer frame = cut.ends()[0].activations.sender->encode(x, {}, mode(sent));
    EXPECT_THROW(cut.ends()[0].activations.receiver->decode(std::move(frame), meta_of(x), {}, mode(expected)),
                 WireError);
  }
}

}  // namespace
}  // namespace strait
