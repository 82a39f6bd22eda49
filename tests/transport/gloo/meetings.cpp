#include "tests/transport/meetings.h"

#include "tests/transport/gloo/process_group_ranks.h"

namespace strait::test {

std::vector<Meeting> meetings_over_gloo() {
  return {{"C10d", [](int ranks, auto timeout,
                      const auto& work) { return Ranks(ranks, timeout, Carrier::c10d).run(work); }},
          {"ProcessGroup", [](int ranks, auto timeout, const auto& work) {
             return ProcessGroupRanks(ranks, timeout).run(work);
           }}};
}

}  // namespace strait::test
