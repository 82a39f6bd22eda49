#include "strait/transport/process_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "strait/base/error.h"

namespace strait {
namespace {

/// A process group of another kind.
class WithoutGloo : public c10d::ProcessGroup {
 public:
  using ProcessGroup::ProcessGroup;
  const std::string getBackendName() const override { return "mpi"; }
};

std::shared_ptr<Group> group_over_other(int size) {
  return group_over(c10::make_intrusive<WithoutGloo>(0, size), c10::make_intrusive<c10d::HashStore>());
}

TEST(ProcessGroup, OneRankNeedsNoConnections) {
  const auto group = group_over_other(1);
  EXPECT_EQ(group->size(), 1);
  EXPECT_THAT(group->gather("alone"), testing::ElementsAre("alone"));
}

TEST(ProcessGroup, OneWithoutGlooIsRefused) {
  try {
    group_over_other(2);
    FAIL() << "taken";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(),
                testing::StartsWith("the process group: expected one with Gloo for tensors of the CPU"));
  }
}

}  // namespace
}  // namespace strait
