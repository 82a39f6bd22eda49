// What a transport does whose payloads stay on a device, when things go wrong.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/codecs/device_order.h"
#include "strait/pipeline/nccl_transport.h"
#include "tests/device/devices.h"
#include "tests/device/fake_nccl.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::Each;
using testing::HasSubstr;

const Tag kTag(0, Direction::activation, 0);

class Nccl : public testing::Test {
 protected:
  ~Nccl() override {
    fake::set_patience(20s);
    fake::hold(false);
  }

  /// Two ranks with a boundary between them, each with its device.
  static std::vector<std::string> run(const std::vector<at::Device>& devices,
                                      const std::function<void(Group& group, Transport& transport)>& work,
                                      std::chrono::milliseconds timeout = 20s) {
    return test::Ranks(2, timeout).run([&](Group& group) {
      const std::vector<int> peers = {1 - group.rank()};
      const std::vector<std::string> names = {"cut"};
      const auto device = devices.at(static_cast<size_t>(group.rank()));
      const auto transport =
          over_nccl(group.make_transport(peers, names), group, peers, names, {device, timeout}, fake::nccl);
      OwnStream(device).run({}, [&] { work(group, *transport); });
    });
  }

  const at::Device device_ = fake::device();
};

TEST_F(Nccl, CarriesBytesInTheirOrder) {
  fake::take_races();
  const auto errors = run({device_, device_}, [&](Group& group, Transport& transport) {
    for (const uint8_t i : {1, 2, 3}) {
      const Tag to(0, group.rank() == 0 ? Direction::activation : Direction::gradient, i);
      const Tag from(0, group.rank() == 1 ? Direction::activation : Direction::gradient, i);
      transport.device_wire(to)->send(to, at::full({i * 1000}, i, at::kByte).to(device_));
      const at::Tensor got = transport.device_wire(from)->receive(from, i * 1000U);
      EXPECT_TRUE(at::equal(got.cpu(), at::full({i * 1000}, i, at::kByte)));
    }
    transport.drain();
  });
  EXPECT_THAT(errors, Each(""));
  EXPECT_EQ(fake::take_races(), std::vector<std::string>());
}

TEST_F(Nccl, HasNoWireToOneWithoutADevice) {
  const auto errors = test::Ranks(3).run([&](Group& group) {
    const int rank = group.rank();
    const std::vector<int> peers = {rank == 2 ? -1 : 1 - rank, rank == 0 ? -1 : 3 - rank};
    const std::vector<std::string> names = {"near", "far"};
    const at::Device device = rank == 2 ? at::Device(at::kCPU) : device_;
    const auto transport =
        over_nccl(group.make_transport(peers, names), group, peers, names, {device, 20s}, fake::nccl);
    EXPECT_EQ(transport->device_wire(kTag) != nullptr, rank != 2);
    EXPECT_EQ(transport->device_wire(Tag(1, Direction::activation, 0)), nullptr);
  });
  EXPECT_THAT(errors, Each(""));
}

TEST_F(Nccl, IsRefusedWhereItWouldCarryNothing) {
  const auto nothing = [](Group& /*group*/, Transport& /*transport*/) {};
  EXPECT_THAT(run({at::kCPU, device_}, nothing),
              Each(HasSubstr("pipeline.transport: \"nccl\" expects a CUDA device in both processes")));
}

TEST_F(Nccl, OneThatDiesBeforeItSendsIsNamed) {
  fake::set_patience(50ms);
  const auto errors = run({device_, device_}, [&](Group& group, Transport& transport) {
    if (group.rank() == 0) throw Error("the disk is full");
    transport.device_wire(kTag)->receive(kTag, 64);
  });
  EXPECT_THAT(errors[1], HasSubstr("rank 1, boundary cut, activation"));
  EXPECT_THAT(errors[1], HasSubstr("the first to fail was rank 0: the disk is full"));
}

TEST_F(Nccl, OneThatNeverSendsIsNamed) {
  fake::set_patience(50ms);
  const auto errors = run(
      {device_, device_},
      [&](Group& group, Transport& transport) {
        if (group.rank() == 1) transport.device_wire(kTag)->receive(kTag, 64);
        std::this_thread::sleep_for(1500ms);
      },
      1500ms);
  EXPECT_THAT(errors[1], testing::StartsWith("rank 1, boundary cut, activation: rank 0 was silent for"));
}

TEST_F(Nccl, AnEndThatIsGivenUpEndsTheWaitOfTheOther) {
  fake::set_patience(50ms);
  const auto errors = run({device_, device_}, [&](Group& group, Transport& transport) {
    if (group.rank() == 0) {
      transport.cancel();
      EXPECT_THROW(transport.device_wire(kTag)->send(kTag, at::ones({4}, at::kByte).to(device_)), Error);
      throw Error("given up");
    }
    transport.device_wire(kTag)->receive(kTag, 64);
  });
  EXPECT_THAT(errors[1], HasSubstr("the first to fail was rank 0: given up")) << "which is told a little later";
}

TEST_F(Nccl, MessagesOfAnotherSizeAreAnError) {
  const auto errors = run({device_, device_}, [&](Group& group, Transport& transport) {
    DeviceWire& wire = *transport.device_wire(kTag);
    if (group.rank() == 0) {
      wire.send(kTag, at::ones({64}, at::kByte).to(device_));
    } else {
      wire.receive(kTag, 65);
    }
  });
  EXPECT_THAT(errors[1], HasSubstr("rank 1, boundary cut, activation: rank 0: NCCL: invalid argument"));
}

}  // namespace
}  // namespace strait
