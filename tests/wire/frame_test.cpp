#include "strait/wire/frame.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/errors.h"

namespace strait {
namespace {

const FrameHeader kHeader{.codec = 4,
                          .link = 0,
                          .boundary = 2,
                          .direction = Direction::gradient,
                          .micro_batch = 3,
                          .step = 9,
                          .batch = 5,
                          .sequence = 77,
                          .payload_size = 0};

std::vector<std::byte> sealed(size_t payload_size) {
  std::vector<std::byte> frame(kFrameHeaderSize + payload_size);
  for (size_t i = 0; i < payload_size; ++i) frame[kFrameHeaderSize + i] = static_cast<std::byte>(i * 7);
  seal_frame(frame, kHeader);
  return frame;
}

TEST(Frame, RoundTripsHeaderAndPayload) {
  for (const size_t size : {0U, 1U, 63U, 64U, 1000U}) {
    const auto bytes = sealed(size);
    const Frame frame = parse_frame(bytes);
    FrameHeader expected = kHeader;
    expected.payload_size = size;
    EXPECT_EQ(frame.header, expected);
    ASSERT_EQ(frame.payload.size(), size);
    EXPECT_EQ(frame.payload.data(), bytes.data() + kFrameHeaderSize);
  }
}

TEST(Frame, EveryFlippedBitIsNoticed) {
  const auto good = sealed(20);
  for (size_t bit = 0; bit < good.size() * 8; ++bit) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    EXPECT_THROW(parse_frame(bad), WireError) << "bit " << bit;
  }
}

TEST(Frame, OfAnotherVersionIsRefusedWithBothNumbers) {
  auto bytes = sealed(20);
  bytes[4] = std::byte{1};
  for (const FrameCheck check : {FrameCheck::verify, FrameCheck::trust}) {
    EXPECT_EQ(test::message_of<WireError>([&] { parse_frame(bytes, check); }),
              "frame has wire version 1, this program speaks 3");
  }
}

TEST(Frame, ReservedBytesAreZeroAlsoWithoutAChecksum) {
  auto good = sealed(20);
  seal_frame(good, kHeader, FrameCheck::trust);
  for (size_t i = 48; i < kFrameHeaderSize; ++i) {
    auto bad = good;
    EXPECT_EQ(bad[i], std::byte{0});
    bad[i] = std::byte{1};
    EXPECT_EQ(test::message_of<WireError>([&] { parse_frame(bad, FrameCheck::trust); }),
              "reserved bytes of the frame header are not zero")
        << i;
  }
}

TEST(Frame, EveryTruncationAndExtensionIsNoticed) {
  auto bytes = sealed(20);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THROW(parse_frame(std::span(bytes).first(size)), WireError) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_THROW(parse_frame(bytes), WireError);
}

TEST(Frame, ItsSizeIsReadFromAWholeHeaderAlone) {
  const auto bytes = sealed(20);
  EXPECT_EQ(frame_size(bytes), bytes.size());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::vector<std::byte> part(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_THROW(frame_size(part), WireError) << size;
  }
}

TEST(Frame, ATrustedFrameCarriesNoChecksum) {
  auto bytes = sealed(20);
  seal_frame(bytes, kHeader, FrameCheck::trust);
  EXPECT_EQ(parse_frame(bytes, FrameCheck::trust).header.sequence, kHeader.sequence);
  EXPECT_THROW(parse_frame(bytes), WireError);
}

TEST(Frame, ExpectationNamesTheFieldThatDiffers) {
  const std::vector<std::pair<std::string, std::function<void(FrameHeader&)>>> changes = {
      {"codec", [](auto& h) { h.codec = 1; }},
      {"link", [](auto& h) { h.link = 1; }},
      {"boundary", [](auto& h) { h.boundary = 0; }},
      {"direction", [](auto& h) { h.direction = Direction::activation; }},
      {"micro-batch", [](auto& h) { h.micro_batch = 0; }},
      {"sequence", [](auto& h) { h.sequence = 78; }},
      {"step", [](auto& h) { h.step = 8; }},
      {"batch", [](auto& h) { h.batch = 6; }},
  };
  EXPECT_NO_THROW(expect_header(kHeader, kHeader));
  for (const auto& [field, change] : changes) {
    FrameHeader got = kHeader;
    change(got);
    try {
      expect_header(got, kHeader);
      ADD_FAILURE() << field;
    } catch (const WireError& error) {
      EXPECT_NE(std::string(error.what()).find(field), std::string::npos) << error.what();
    }
  }
}

TEST(Frame, ABatchThatOneEndDoesNotKnowIsNotCompared) {
  FrameHeader unknown = kHeader;
  unknown.batch = 0;
  EXPECT_NO_THROW(expect_header(unknown, kHeader));
  EXPECT_NO_THROW(expect_header(kHeader, unknown));
}

}  // namespace
}  // namespace strait
