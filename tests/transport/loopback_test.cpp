#include "strait/transport/loopback.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace strait {
namespace {

Buffer message(size_t size, std::byte value) {
  Buffer buffer(size);
  buffer.resize(size);
  std::ranges::fill(buffer.bytes(), value);
  return buffer;
}

TEST(Loopback, KeepsTagsApartAndOrderWithinATag) {
  Loopback transport;
  const Tag a(0, Direction::activation, 0);
  const Tag b(0, Direction::gradient, 0);
  transport.send(a, message(1, std::byte{1}));
  transport.send(b, message(2, std::byte{2}));
  transport.send(a, message(3, std::byte{3}));
  EXPECT_EQ(transport.pending(), 3U);
  EXPECT_EQ(transport.receive(b, 2).bytes()[0], std::byte{2});
  EXPECT_EQ(transport.receive(a, 9).size(), 1U);
  EXPECT_EQ(transport.receive(a, 3).size(), 3U);
  EXPECT_EQ(transport.pending(), 0U);
}

TEST(Loopback, AMissingOrTooLongMessageIsAnError) {
  Loopback transport;
  const Tag tag(1, Direction::gradient, 2);
  EXPECT_THROW(transport.receive(tag, 10), WireError);
  transport.send(tag, message(11, std::byte{0}));
  EXPECT_THROW(transport.receive(tag, 10), WireError);
}

TEST(Tag, IsDistinctForEveryFieldAndChecked) {
  EXPECT_NE(Tag(1, Direction::activation, 0), Tag(0, Direction::activation, 1));
  EXPECT_NE(Tag(1, Direction::activation, 0), Tag(1, Direction::gradient, 0));
  EXPECT_GE(Tag(Tag::kBoundaries - 1, Direction::gradient, Tag::kMicroBatches - 1).value(), 0);
  EXPECT_THROW(Tag(Tag::kBoundaries, Direction::activation, 0), InternalError);
  EXPECT_THROW(Tag(0, Direction::activation, Tag::kMicroBatches), InternalError);
}

}  // namespace
}  // namespace strait
