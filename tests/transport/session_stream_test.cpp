// What two ranks say to each other comes once and in order, wherever connections break off.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "strait/base/error.h"
#include "strait/base/random.h"
#include "strait/transport/tcp/inbound.h"
#include "strait/transport/tcp/outbound.h"

namespace strait::tcp {
namespace {

constexpr Channel kTensors{.kind = Kind::tensor};

Buffer filled(size_t size, uint8_t value) {
  Buffer buffer(size);
  buffer.resize(size);
  std::memset(buffer.data(), value, size);
  return buffer;
}

bool is_filled(const Buffer& buffer, size_t size, uint8_t value) {
  return buffer.size() == size && std::ranges::all_of(buffer.bytes(), [&](std::byte byte) {
           return static_cast<uint8_t>(byte) == value;
         });
}

/// Moves at most so many bytes; gives the messages that are complete by then.
std::vector<std::pair<MessageHeader, Buffer>> move(Outbound& from, Inbound& to, size_t most) {
  std::vector<std::pair<MessageHeader, Buffer>> messages;
  while (most > 0) {
    const auto bytes = from.next(0);
    if (bytes.empty()) break;
    const auto space = to.space();
    const size_t size = std::min({most, bytes.size(), space.size()});
    std::memcpy(space.data(), bytes.data(), size);
    from.wrote(size);
    most -= size;
    if (auto message = to.got(size)) messages.push_back(std::move(*message));
  }
  return messages;
}

/// Bytes that are written and never come.
void swallow(Outbound& from, size_t most) {
  while (most > 0) {
    const size_t size = std::min(most, from.next(0).size());
    if (size == 0) return;
    from.wrote(size);
    most -= size;
  }
}

TEST(SessionStream, CarriesOnWhereAConnectionBrokeOff) {
  CounterRandom random(7);
  for (int round = 0; round < 50; ++round) {
    Outbound out;
    Inbound in;
    std::vector<size_t> sizes;
    for (int i = 0; i < 30; ++i) sizes.push_back(random.below(i % 5 == 0 ? 100'000 : 100));
    for (size_t i = 0; i < sizes.size(); ++i) out.send(kTensors, filled(sizes[i], static_cast<uint8_t>(i)));
    size_t next = 0;
    uint64_t confirmed = 0;
    while (next < sizes.size()) {
      for (auto& [header, payload] : move(out, in, random.below(60'000))) {
        ASSERT_EQ(header.type, MessageHeader::Type::data);
        ASSERT_TRUE(is_filled(payload, sizes[next], static_cast<uint8_t>(next))) << next;
        ++next;
      }
      swallow(out, random.below(40'000));
      if (random.below(2) == 0) confirmed += out.confirm(in.received());
      out.carry_on_from(in.received());
    }
    confirmed += out.confirm(in.received());
    EXPECT_EQ(confirmed, sizes.size());
    EXPECT_TRUE(out.next(0).empty());
  }
}

TEST(SessionStream, UrgentMessagesAndRoomGoFirstAndLeavingLast) {
  Outbound out;
  Inbound in;
  out.leave();
  out.send(kTensors, filled(10, 1));
  out.send({.kind = Kind::failure}, filled(5, 2));
  out.give_room(kTensors);
  out.give_room(kTensors);
  EXPECT_FALSE(out.send(kTensors, filled(3, 3))) << "the loop has been told already";
  const auto messages = move(out, in, 1000);
  ASSERT_EQ(messages.size(), 5U);
  EXPECT_EQ(messages[0].first.type, MessageHeader::Type::taken);
  EXPECT_EQ(messages[0].first.size, 2U);
  EXPECT_EQ(messages[1].first.channel.kind, Kind::failure);
  EXPECT_TRUE(is_filled(messages[2].second, 10, 1));
  EXPECT_TRUE(is_filled(messages[3].second, 3, 3));
  EXPECT_EQ(messages[4].first.type, MessageHeader::Type::leave);
  EXPECT_TRUE(out.send(kTensors, filled(1, 4)));
}

TEST(SessionStream, ABeatGoesAloneWhereNothingElseDoes) {
  Outbound out;
  Inbound in;
  out.beat();
  out.send(kTensors, filled(1, 1));
  EXPECT_EQ(move(out, in, 1000).size(), 1U) << "every header says what was received";
  out.beat();
  EXPECT_EQ(move(out, in, 1000).front().first.type, MessageHeader::Type::beat);
}

TEST(SessionStream, TellsHowMuchOfAMessageIsConfirmed) {
  Outbound out;
  Inbound in;
  out.beat();
  move(out, in, 1000);
  out.confirm(in.received());
  EXPECT_EQ(out.confirmed_part(), 0U) << "a sign of life is no message";
  for (const uint8_t value : {1, 2}) out.send(kTensors, filled(1000, value));
  for (const size_t part : {300, 600}) {
    move(out, in, 300);
    EXPECT_EQ(out.confirm(in.received()), 0U);
    EXPECT_EQ(out.confirmed_part(), part);
  }
  move(out, in, 600);
  EXPECT_EQ(out.confirm(in.received()), 1U);
  EXPECT_EQ(out.confirmed_part(), 1200 - (1000 + kHeaderSize)) << "of the second";
}

TEST(SessionStream, ABeatSaysHowLatelyItsSenderHasHeardOfOthers) {
  Outbound out;
  Inbound in;
  out.beat(4001);
  EXPECT_EQ(move(out, in, 1000).front().first.size, 4001U);
  out.beat();
  EXPECT_EQ(move(out, in, 1000).front().first.size, 0U);
}

TEST(SessionStream, WhatWasNeverSentCannotBeConfirmed) {
  Outbound out;
  Inbound in;
  out.send(kTensors, filled(100, 1));
  move(out, in, 1000);
  EXPECT_THROW(out.confirm(in.received() + 1), WireError);
  EXPECT_THROW(out.carry_on_from(in.received() + 1), WireError);
  EXPECT_EQ(out.confirm(in.received()), 1U);
  EXPECT_THROW(out.carry_on_from(in.received() - 1), WireError) << "it was freed";
}

TEST(SessionStream, AHeaderIsCheckedBeforeItsPayloadIsMadeRoomFor) {
  const auto error_of = [](const MessageHeader& header) -> std::string {
    Inbound in;
    write_header(in.space().first<kHeaderSize>(), header);
    try {
      in.got(kHeaderSize);
    } catch (const WireError& error) {
      return error.what();
    }
    return "";
  };
  MessageHeader header{.type = MessageHeader::Type::data, .channel = kTensors, .size = kMaxPayload + 1};
  EXPECT_EQ(error_of(header), "a message of 4294967297 bytes, expected at most 4294967296");
  header.channel.kind = Kind::failure;
  header.size = kMaxUrgent + 1;
  EXPECT_EQ(error_of(header), "a message of 65537 bytes, expected at most 65536");
  header.channel.kind = static_cast<Kind>(200);
  EXPECT_EQ(error_of(header), "a message of type 1 and kind 200, expected at most 3 and 7");
}

TEST(SessionStream, FramesOfABoundaryAndDirectionShareALane) {
  std::set<Channel> lanes;
  for (const uint32_t tag : {0U, 1U, (1U << 19) - 1, 1U << 19, 1U << 29}) {
    lanes.insert(Channel{.kind = Kind::frame, .instance = 1, .tag = tag}.lane());
  }
  EXPECT_EQ(lanes.size(), 3U);
}

}  // namespace
}  // namespace strait::tcp
