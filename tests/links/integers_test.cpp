#include "strait/links/integers.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"

namespace strait {
namespace {

using testing::ElementsAre;

/// The payload of a message of these integers.
std::vector<int> bytes_of_integers(const Link& link, const std::vector<int64_t>& values) {
  const at::Tensor x = at::tensor(values, at::kLong);
  std::vector<std::byte> space(link.payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  link.make_encoder()->encode(x, {}, out);
  EXPECT_EQ(out.used(), space.size()) << "the size is exact";
  std::vector<int> bytes;
  for (const std::byte byte : space) bytes.push_back(std::to_integer<int>(byte));
  return bytes;
}

at::Tensor decoded(const Link& link, const std::vector<int>& bytes, const std::vector<int64_t>& shape) {
  std::vector<std::byte> space;
  for (const int byte : bytes) space.push_back(static_cast<std::byte>(byte));
  ByteReader in(space);
  return link.make_decoder()->decode(in, {shape}, {}).tensor;
}

TEST(IntegerLink, SendsTwoBytesEachOrFourWhereTheLimitAsksForIt) {
  const auto narrow = make_integer_link(65536);
  const auto wide = make_integer_link(65537);
  EXPECT_THAT(bytes_of_integers(*narrow, {0, 258, 65535}), ElementsAre(0, 0, 2, 1, 255, 255));
  EXPECT_THAT(bytes_of_integers(*wide, {65536, 258}), ElementsAre(0, 0, 1, 0, 2, 1, 0, 0));
  EXPECT_TRUE(narrow->payload_size({{3, 5}}).exact);
  EXPECT_EQ(narrow->payload_size({{3, 5}}).bound, 30U);
  EXPECT_EQ(wide->payload_size({{3, 5}}).bound, 60U);
  EXPECT_NE(narrow->id(), make_link("none")->id()) << "ends that disagree about the type notice it";
}

TEST(IntegerLink, TheReceiverSeesThemAsTheyAre) {
  const auto link = make_integer_link(50257);
  const at::Tensor seen = decoded(*link, {0, 0, 2, 1, 80, 196, 1, 0}, {2, 2});
  EXPECT_TRUE(at::equal(seen, at::tensor({0, 258, 50256, 1}, at::kLong).view({2, 2})));
  EXPECT_EQ(decoded(*link, {}, {0, 4}).sizes(), (std::vector<int64_t>{0, 4}));
}

TEST(IntegerLink, RefusesWhatIsNotBelowTheLimit) {
  const auto link = make_integer_link(300);
  for (const int64_t value : {-1, 300}) EXPECT_THROW(bytes_of_integers(*link, {7, value}), NumericError);
  EXPECT_THROW(decoded(*link, {44, 1}, {1}), WireError) << "300";
  EXPECT_THROW(decoded(*link, {43, 1, 0}, {1}), WireError) << "a byte too many";
  EXPECT_THROW(decoded(*link, {43}, {1}), WireError) << "a byte too few";
  EXPECT_EQ(decoded(*link, {43, 1}, {1}).item<int64_t>(), 299);
  EXPECT_THROW(make_integer_link(0), InputError);
  EXPECT_THROW(make_integer_link((int64_t{1} << 32) + 1), InputError);
}

TEST(IntegerLink, IsNoFeedbackThatAPersonCanName) { EXPECT_THROW(check_feedback("integers:7"), InputError); }

}  // namespace
}  // namespace strait
