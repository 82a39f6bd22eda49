// What a channel says that its messages took, on the fake device, whose operations take a millisecond each.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "strait/boundary/channel.h"
#include "tests/codecs/inputs.h"
#include "tests/device/fake_device.h"

namespace strait {
namespace {

/// Seconds of encoding and decoding one message, before which the device is given so many other operations.
Traffic times_behind(int operations) {
  const ChannelSpec spec{.boundary_name = "cut", .link = make_link("quant:4,scope=sample", "ef21")};
  Sender sender(spec, spec.link->make_encoder());
  Receiver receiver(spec, spec.link->make_decoder());
  at::Tensor x = at::ones({4, 64}).to(fake::device());
  for (int i = 0; i < operations; ++i) x = x.add(1);
  const MessageContext context{.device = fake::device()};
  const MessageMode mode{.training = true};
  Buffer frame = sender.encode(x, context, mode, FrameCheck::verify);
  at::Tensor other = at::ones({4}).to(fake::device());
  for (int i = 0; i < operations; ++i) other = other.add(1);
  receiver.decode(std::move(frame), meta_of(x), context, mode, FrameCheck::verify);
  Traffic traffic = sender.take_traffic();
  traffic += receiver.take_traffic();
  EXPECT_EQ(receiver.take_traffic().decode_seconds, 0);
  return traffic;
}

bool is_whole(double milliseconds) { return std::abs(milliseconds - std::round(milliseconds)) < 1e-9; }

TEST(ChannelOnDevice, CountsItsOwnOperationsAndNotWhatTheyWaitFor) {
  const Traffic alone = times_behind(0);
  const Traffic behind = times_behind(1000);
  EXPECT_GE(alone.encode_seconds, 1e-3);
  EXPECT_GE(alone.decode_seconds, 1e-3);
  EXPECT_TRUE(is_whole(1e3 * alone.encode_seconds)) << "by the device's time";
  EXPECT_TRUE(is_whole(1e3 * alone.decode_seconds));
  EXPECT_DOUBLE_EQ(behind.encode_seconds, alone.encode_seconds);
  EXPECT_DOUBLE_EQ(behind.decode_seconds, alone.decode_seconds);
}

TEST(ChannelOnDevice, LeavesAPayloadThereUnlessItsIndicesAreWanted) {
  const at::Tensor x = normal_tensor({4, 64}, 7);
  const MessageContext context{.device = fake::device()};
  const MessageMode mode{.training = true};
  for (const char* spec_text : {"topk:0.25,index=bitmap", "random:0.25", "quant:4"}) {
    for (const bool are_wanted : {false, true}) {
      SCOPED_TRACE(std::string(spec_text) + (are_wanted ? ", wanted" : ""));
      const auto spec = [&] {  // each end has a memory of its own
        return ChannelSpec{.boundary_name = "cut",
                           .link = make_link(spec_text),
                           .diagnostics = 1,
                           .indices = are_wanted ? std::make_shared<IndexMemory>() : nullptr};
      };
      Sender sender(spec());
      Receiver receiver(spec());
      at::Tensor there;
      Buffer frame = sender.encode(x.to(fake::device()), context, mode, FrameCheck::verify, &there);
      ASSERT_EQ(there.defined(), !are_wanted);
      const size_t size = there.defined() ? there.nbytes() : 0;
      EXPECT_EQ(receiver.bytes_there(frame, meta_of(x), context, mode), size);
      EXPECT_EQ(sender.take_traffic().wire_bytes, frame.size() + size);
      const at::Tensor received = receiver.decode(std::move(frame), meta_of(x), context, mode,
                                                  FrameCheck::verify, there.defined() ? &there : nullptr);
      EXPECT_TRUE(same_bits(received.cpu(), make_codec(spec_text)->reconstruct(x, {})));
    }
  }
}

}  // namespace
}  // namespace strait
