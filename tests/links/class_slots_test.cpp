// Feedback whose state belongs to classes (slots=class), against the schemes' definitions with a map of states.

#include <map>

#include "tests/links/pair.h"
#include "tests/support/largest.h"

namespace strait {
namespace {

using test::expect_equal;
using test::largest;
using test::Pair;

using Labels = std::vector<int64_t>;

/// Classes met before and new ones, once and several times in a batch.
const std::vector<Labels> kBatches = {{0, 1, 1, 0}, {7, 1}, {2, 2, 2, 0, 7}, {1}, {0, 7, 7, 1}};

at::Tensor batch_of(const Labels& labels) { return at::randn({static_cast<int64_t>(labels.size()), 2, 10}); }

at::Tensor send_of_classes(Pair& pair, const at::Tensor& x, const Labels& classes) {
  return pair.send(x, MessageContext{.seed = 3, .classes = classes});
}

enum class Kind : uint8_t { residual, estimate, mixed };

/// ef:beta, diana:alpha and ef-mixed around topk:0.25, row by row, with one state a class: the mean over the
/// rows of its class.
class PlainSlots {
 public:
  PlainSlots(Kind kind, float step) : kind_(kind), step_(step) {}

  at::Tensor send(const at::Tensor& x, const Labels& classes) {
    std::map<int64_t, std::vector<at::Tensor>> next;
    at::Tensor seen = at::empty_like(x);
    for (size_t i = 0; i < classes.size(); ++i) {
      const at::Tensor row = x.narrow(0, static_cast<int64_t>(i), 1).flatten(1);  // of 20 elements
      const at::Tensor state = states_.try_emplace(classes[i], at::zeros_like(row)).first->second;
      const at::Tensor sum = kind_ == Kind::estimate ? row.sub(state) : row.add(state);
      const at::Tensor received =
          kind_ == Kind::mixed ? largest(row, 3).add(largest(state, 2)) : largest(sum, 5);
      const at::Tensor lost = sum.sub(received);
      next[classes[i]].push_back(kind_ == Kind::estimate ? state.add(received.mul(step_))
                                 : step_ == 1            ? lost
                                                         : state.mul(1 - step_).add(lost.mul(step_)));
      seen.narrow(0, static_cast<int64_t>(i), 1)
          .flatten(1)
          .copy_(kind_ == Kind::estimate ? state.add(received) : received);
    }
    for (const auto& [label, rows] : next)
      states_[label] = at::stack(rows).to(at::kDouble).mean(0).to(at::kFloat);
    return seen;
  }

 private:
  Kind kind_;
  float step_;
  std::map<int64_t, at::Tensor> states_;
};

struct Scheme {
  const char* feedback;
  Kind kind;
  float step;
};

class ClassSlots : public testing::TestWithParam<Scheme> {
 protected:
  static std::string by_class() { return std::string(GetParam().feedback) + ",slots=class"; }
};

TEST_P(ClassSlots, KeepTheMeanOfEachClass) {
  at::manual_seed(1);
  Pair apart(by_class(), "topk:0.25");
  Pair together(make_link("topk:0.25", by_class()));
  PlainSlots plain(GetParam().kind, GetParam().step);
  for (int round = 0; round < 3; ++round) {
    for (const Labels& classes : kBatches) {
      const at::Tensor x = batch_of(classes);
      const at::Tensor expected = plain.send(x, classes);
      EXPECT_TRUE(at::equal(send_of_classes(apart, x, classes), expected)) << round;
      EXPECT_TRUE(at::equal(send_of_classes(together, x, classes), expected)) << round;
      EXPECT_EQ(apart.bytes(), together.bytes());
    }
  }
}

TEST_P(ClassSlots, GoOnFromASavedState) {
  at::manual_seed(2);
  Pair first(by_class(), "topk:0.25");
  send_of_classes(first, batch_of({4, 5, 5}), {4, 5, 5});
  Pair second(by_class(), "topk:0.25");
  test::load_state(second.encoder(), first.encoder_state());
  test::load_state(second.decoder(), first.decoder_state());
  const at::Tensor x = batch_of({5, 4, 6});
  EXPECT_TRUE(at::equal(send_of_classes(first, x, {5, 4, 6}), send_of_classes(second, x, {5, 4, 6})));
  expect_equal(first.encoder_state(), second.encoder_state());
  expect_equal(first.decoder_state(), second.decoder_state());
}

TEST_P(ClassSlots, EvaluationMeetsNoState) {
  at::manual_seed(3);
  const Labels classes = {0, 1};
  Pair trained(by_class(), "topk:0.25");
  send_of_classes(trained, batch_of(classes), classes);
  const auto [sent, received] = std::pair(trained.encoder_state(), trained.decoder_state());
  Pair fresh(GetParam().feedback, "topk:0.25");
  const at::Tensor x = batch_of(classes);
  EXPECT_TRUE(at::equal(trained.send(x, MessageContext{.classes = classes}, true), fresh.send(x, 0, true)));
  expect_equal(trained.encoder_state(), sent);
  expect_equal(trained.decoder_state(), received);
}

TEST_P(ClassSlots, TellWhatTheyAre) {
  const auto link = make_link("topk:0.25", by_class());
  EXPECT_EQ(link->slots(), Slots::classes);
  EXPECT_EQ(link->store(), nullptr);
  EXPECT_FALSE(link->allows_micro_batches());
  EXPECT_FALSE(link->serves_weights());
  EXPECT_THROW(make_link("topk:0.25", by_class() + ",format=bf16"), InputError);
  Pair pair(by_class(), "topk:0.25");
  EXPECT_THROW(pair.send(batch_of({1, 2}), MessageContext{}), InternalError) << "without classes";
}

INSTANTIATE_TEST_SUITE_P(Links, ClassSlots,
                         testing::Values(Scheme{"ef", Kind::residual, 1},
                                         Scheme{"ef:0.5", Kind::residual, 0.5F},
                                         Scheme{"ef21", Kind::estimate, 1},
                                         Scheme{"diana:0.5", Kind::estimate, 0.5F},
                                         Scheme{"ef-mixed", Kind::mixed, 1}));

}  // namespace
}  // namespace strait
