// Every feedback scheme on a device against the same on the CPU, message by message, and their state
// from the one to the other.

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "strait/links/integers.h"
#include "tests/codecs/inputs.h"
#include "tests/device/devices.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

using Scheme = std::pair<std::string, std::string>;  // feedback and codec

class LinkOnDevice : public testing::TestWithParam<Scheme> {
 protected:
  const at::Device device_ = test::device();
  const Scheme scheme_ = GetParam();
  std::shared_ptr<const Link> link_ = make_link(scheme_.second, scheme_.first);

  /// What all messages of a step share.
  MessageContext context_of(int step, const at::Tensor& before) const {
    return {.seed = 3,
            .step = static_cast<uint64_t>(step),
            .ids = ids_[static_cast<size_t>(step % 2)],
            .classes = classes_,
            .previous = link_->needs_previous() ? &before : nullptr};
  }

  std::vector<std::vector<int64_t>> ids_ = {{4, 0, 7, 2}, {2, 9, 4, 5}};
  std::vector<int64_t> classes_ = {1, 0, 1, 2};
};

TEST_P(LinkOnDevice, GivesTheTensorsOfTheCpu) {
  fake::take_races();
  test::Pair here(link_, {link_->make_encoder(), link_->make_decoder()});
  test::Pair there(link_, {link_->make_encoder(), link_->make_decoder()});
  at::Tensor before = normal_tensor({4, 128}, 90);
  for (int step = 0; step < 6; ++step) {
    SCOPED_TRACE(step);
    const bool frozen = step == 3;
    const at::Tensor x = normal_tensor({4, 128}, 91U + static_cast<unsigned>(step));
    const MessageContext on_cpu = context_of(step, before);
    const at::Tensor before_there = before.to(device_);
    MessageContext on_device = context_of(step, before_there);
    on_device.device = device_;
    const at::Tensor expected = here.send(x, on_cpu, frozen);
    const at::Tensor received = there.send(x.to(device_), on_device, frozen);
    EXPECT_TRUE(received.device() == device_);
    EXPECT_TRUE(same_bits(received.cpu(), expected));
    EXPECT_EQ(there.bytes(), here.bytes());
    before = x;
    if (step != 4) continue;  // as from a checkpoint, which is the CPU's
    test::load_state(there.encoder(), here.encoder_state());
    test::load_state(there.decoder(), here.decoder_state());
  }
  EXPECT_EQ(there.encoder_state().size(), here.encoder_state().size());
  for (const auto& [name, value] : here.encoder_state()) {
    EXPECT_TRUE(at::equal(there.encoder_state().at(name).cpu(), value)) << name;
  }
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

/// All feedback around a codec that it can go around: with the arithmetic in the codec's passes and without.
std::vector<Scheme> all_schemes() {
  std::vector<Scheme> schemes;
  for (const std::string& feedback : link_samples()) {
    schemes.emplace_back(feedback, "topk:0.1");
    if (!feedback.starts_with("ef-mixed")) schemes.emplace_back(feedback, "quant:4,scope=sample");
  }
  return schemes;
}

/// The links that nobody names as feedback.

TEST(OtherLinkOnDevice, SendsAGradientAtTheIndicesOfTheActivations) {
  const at::Device device = test::device();
  for (const auto& spec :
       {"topk:0.1", "topk:0.3,index=bitmap", "topk:0.2,values=quant:4", "random:0.3", "columns:0.25"}) {
    SCOPED_TRACE(spec);
    const auto codec = make_codec(spec);
    const at::Tensor activations = normal_tensor({4, 128}, 92);
    const auto indices_on = [&](at::Device at) {
      std::vector<std::byte> space(codec->payload_size(meta_of(activations)).bound);
      ByteWriter out(space);
      return codec->write(activations.to(at), {.device = at, .wants_indices = true}, out);
    };
    const IndexSet here = indices_on(at::kCPU);
    const IndexSet there = indices_on(device);
    EXPECT_EQ(there.masks, here.masks);
    const auto link = make_reuse_link(codec);
    const at::Tensor gradients = normal_tensor({4, 128}, 93);
    test::Pair on_cpu(link);
    test::Pair on_device(link);
    const at::Tensor expected = on_cpu.send(gradients, {.indices = &here});
    const at::Tensor received = on_device.send(gradients.to(device), {.device = device, .indices = &there});
    EXPECT_TRUE(received.device() == device);
    EXPECT_TRUE(same_bits(received.cpu(), expected));
    EXPECT_EQ(on_device.bytes(), on_cpu.bytes());
  }
}

TEST(OtherLinkOnDevice, GoesOnOnTheCpu) {
  const at::Device device = test::device();
  for (const char* feedback : {"ef", "ef21"}) {
    for (const char* codec : {"topk:0.1", "quant:4,scope=sample"}) {
      SCOPED_TRACE(std::string(feedback) + " " + codec);
      test::Pair on_cpu(make_link(codec, feedback));
      test::Pair moved(make_link(codec, feedback));
      for (int step = 0; step < 5; ++step) {
        const at::Device at = step < 3 ? device : at::Device(at::kCPU);
        const at::Tensor x = normal_tensor({4, 128}, 94U + static_cast<unsigned>(step));
        const at::Tensor received = moved.send(x.to(at), {.device = at});
        EXPECT_TRUE(same_bits(received.cpu(), on_cpu.send(x, {})));
      }
    }
  }
}

TEST(OtherLinkOnDevice, SendsIntegers) {
  const at::Device device = test::device();
  for (const int64_t limit : {65536, 65537}) {
    test::Pair pair(make_integer_link(limit));
    const at::Tensor x = at::arange(limit - 96, limit, at::kLong).view({8, 12});
    const at::Tensor received = pair.send(x.to(device), {.device = device});
    EXPECT_TRUE(received.device() == device);
    EXPECT_TRUE(at::equal(received.cpu(), x));
    EXPECT_THROW(pair.send((x + 1).to(device), {.device = device}), NumericError);
  }
}

INSTANTIATE_TEST_SUITE_P(All, LinkOnDevice, testing::ValuesIn(all_schemes()));

}  // namespace
}  // namespace strait
