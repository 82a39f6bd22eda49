#include "strait/train/gradients.h"

#include "tests/train/replicas.h"
#include "tests/train/tied_network.h"

namespace strait {
namespace {

using test::expect_equal;
using test::State;
using test::tied_data;
using test::tied_model;

TEST(Gradients, TiesClippingAndDropoutGiveTheBitsOfOneProcess) {
  for (const int micro_batches : {1, 4}) {
    const TrainerOptions all = test::tied_options(micro_batches, 0.5);
    const State expected = test::tied_state_after(all);
    const auto got = test::train_replicas(4, tied_model, all, tied_data());
    expect_equal(got.replicas[0], expected);
  }
}

}  // namespace
}  // namespace strait
