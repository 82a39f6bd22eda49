#include "strait/links/slot_state.h"

#include <random>

#include "tests/links/pair.h"

namespace strait {
namespace {

/// The state as a visitor sees it, undefined where nothing was set.
at::Tensor all_of(SlotState& state) {
  struct Half {
    SlotState& state;
    void visit_state(StateVisitor& visitor) { state.visit("all", visitor); }
  } half{state};
  const auto found = test::state_of(half);
  return found.empty() ? at::Tensor() : found.at("all");
}

/// Micro-batches and short batches in any order against one tensor that is read and written in place.
TEST(SlotState, IsOneTensorOfRowsWhateverTheMessages) {
  std::mt19937 random(1);
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random()) % bound; };
  for (int round = 0; round < 20; ++round) {
    RowState state;
    at::Tensor dense = at::zeros({12, 2, 3});
    int64_t used = 0;
    for (int message = 0; message < 60; ++message) {
      const int64_t first = below(3) == 0 ? 0 : below(10);
      const int64_t rows = 1 + below(12 - first);
      const MessageContext context{.first_row = static_cast<size_t>(first)};
      const MessageMeta meta{{rows, 2, 3}};
      const at::Tensor before = state.rows(meta, context);
      ASSERT_TRUE(before.is_contiguous());
      ASSERT_TRUE(at::equal(before, dense.narrow(0, first, rows)));
      const at::Tensor next = at::randn({rows, 2, 3});
      if (below(3) == 0) {
        state.set_rows(before.copy_(next), context);
      } else {
        state.set_rows(state.room(meta).copy_(next), context);
      }
      dense.narrow(0, first, rows).copy_(next);
      used = std::max(used, first + rows);
      if (below(8) == 0) {
        ASSERT_TRUE(at::equal(all_of(state), dense.narrow(0, 0, used)));
      }
    }
    EXPECT_TRUE(at::equal(all_of(state), dense.narrow(0, 0, used)));
  }
}

TEST(SlotState, ReadingMakesNoState) {
  RowState state;
  EXPECT_TRUE(at::equal(state.rows({{2, 5}}, {.first_row = 3}), at::zeros({2, 5})));
  EXPECT_FALSE(all_of(state).defined());
}

/// So that what goes wrong with a message can leave the rows as they were.
TEST(SlotState, RoomIsNotTheRows) {
  RowState state;
  const MessageMeta meta{{2, 5}};
  for (int message = 0; message < 4; ++message) {
    const at::Tensor next = state.room(meta);
    EXPECT_NE(next.data_ptr(), state.rows(meta, {}).data_ptr());
    state.set_rows(next.fill_(message), {});
    EXPECT_TRUE(at::equal(state.rows(meta, {}), at::full({2, 5}, static_cast<float>(message))));
  }
}

}  // namespace
}  // namespace strait
