#include "strait/transport/group_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/transport/ranks.h"

namespace strait {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(GroupPart, APipelineIsAGroupOfItsOwn) {
  std::vector<int> received(4);
  const auto errors = test::Ranks(4).run([&](Group& group) {
    const std::shared_ptr<Group> whole(&group, [](Group*) {});
    const auto part = pipeline_of(whole, {group.rank(), 4, 2});
    EXPECT_EQ(part->size(), 2);
    EXPECT_EQ(part->rank(), group.rank() % 2);
    const std::string first = std::to_string(group.rank() / 2 * 2);
    const std::string second = std::to_string(group.rank() / 2 * 2 + 1);
    EXPECT_THAT(part->gather(std::to_string(group.rank())), ElementsAre(first, second));

    at::Tensor number = torch::full({1}, group.rank(), at::kInt);
    if (part->rank() == 0) {
      part->send(number, 1, "a number");
    } else {
      part->receive(number, 0, "a number");
    }
    received[static_cast<size_t>(group.rank())] = number.item<int>();

    const auto transport = part->make_transport({1 - part->rank()}, {"cut"});
    if (part->rank() == 0) {
      Buffer frame(kFrameHeaderSize);
      frame.resize(kFrameHeaderSize);
      seal_frame(frame.bytes(), {.boundary = static_cast<uint16_t>(group.rank())});
      transport->send({0, Direction::activation, 0}, std::move(frame));
      transport->drain();
    } else {
      const Buffer frame = transport->receive({0, Direction::activation, 0}, kFrameHeaderSize);
      EXPECT_EQ(parse_frame(frame.bytes()).header.boundary, group.rank() - 1);
    }
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(received, ElementsAre(0, 0, 2, 2));
}

}  // namespace
}  // namespace strait
