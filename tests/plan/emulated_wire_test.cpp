// The wire that a run can be held up by is the one that a plan is simulated with.

#include "strait/transport/emulated_wire.h"

#include <gtest/gtest.h>

#include "strait/pipeline/schedules.h"
#include "strait/pipeline/simulate.h"

namespace strait {
namespace {

TEST(EmulatedWire, IsThatOfTheSimulator) {
  constexpr size_t kPackets = 3;
  constexpr double kBytes = kPackets * (EmulatedWire::kPacketPayload + EmulatedWire::kPacketHeaders);
  for (const char* name : {"gpipe", "1f1b", "interleaved"}) {
    const int stages_per_rank = std::string(name) == "interleaved" ? 2 : 1;
    const Plan plan = lower(Schedule(name).plan({6, 5, stages_per_rank}));
    for (const double seconds : {0.3, 1.0, 2.5}) {
      CostModel costs = CostModel::uniform(6, 1, 1.5, {.bytes = kBytes});
      costs.link = {.bytes_per_second = kBytes / seconds, .latency_seconds = 0.7};
      const Simulation simulation = simulate(plan, costs);
      std::vector<std::unique_ptr<EmulatedWire>> wires;
      for (size_t i = 0; i < plan.ranks.size(); ++i)
        wires.push_back(std::make_unique<EmulatedWire>(costs.link));
      int sends = 0;
      for (const Step& step : simulation.steps) {
        if (!is_send(step.action.op)) continue;
        ++sends;
        const EmulatedWire::Time start{std::chrono::nanoseconds(static_cast<int64_t>(step.start * 1e9))};
        const auto arrival =
            wires[static_cast<size_t>(step.rank)]->send(kPackets * EmulatedWire::kPacketPayload, start);
        EXPECT_NEAR(std::chrono::duration<double>(arrival.time_since_epoch()).count(), step.end, 1e-6) << name;
      }
      EXPECT_EQ(sends, 2 * 5 * 5) << name;
    }
  }
}

}  // namespace
}  // namespace strait
