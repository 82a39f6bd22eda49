#include "strait/train/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "tests/support/errors.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

using testing::HasSubstr;

struct ThreadsVariable : test::Variable {
  explicit ThreadsVariable(const char* value) : Variable("OMP_NUM_THREADS", value) {}
};

TEST(Threads, AreThoseOfTheConfigurationBeforeTheEnvironmentsAndTheCores) {
  const ThreadsVariable five("5");
  EXPECT_EQ(thread_count(3, 1), 3);
  EXPECT_EQ(thread_count(0, 1), 5);
  EXPECT_EQ(thread_count(0, 4), 5) << "the variable is of a process";
  const ThreadsVariable nested("6,2");
  EXPECT_EQ(thread_count(0, 1), 6);
}

TEST(Threads, AreTheUsableCoresSharedOutWhereNothingIsSaid) {
  for (const char* value : {static_cast<const char*>(nullptr), "", "many", "0", "-2"}) {
    const ThreadsVariable variable(value);
    EXPECT_EQ(thread_count(0, 1), usable_cores());
    EXPECT_EQ(thread_count(0, 2 * usable_cores()), 1);
  }
}

TEST(Threads, AMachineWithFreeCoresIsNotWorthANote) {
  EXPECT_EQ(crowding_note(8, 1, 8, 0), "");
  EXPECT_EQ(crowding_note(8, 1, 8, 3.9), "");
  EXPECT_EQ(crowding_note(1, 4, 2, 8), "") << "one thread waits for no other";
}

TEST(Threads, MoreThanCoresAreNoted) {
  EXPECT_THAT(crowding_note(2, 2, 2, 0), HasSubstr("4 threads share 2 cores"));
  EXPECT_THAT(crowding_note(2, 1, 1, 0), HasSubstr("2 threads share 1 core,"));
}

TEST(Threads, AMachineThatOthersKeepBusyIsNoted) {
  const std::string note = crowding_note(8, 1, 8, 5.5);
  EXPECT_THAT(note, HasSubstr("keep 5.5 of 8 cores busy"));
  EXPECT_THAT(note, HasSubstr("train.threads = 2 "));
  EXPECT_THAT(crowding_note(2, 1, 2, 40), HasSubstr("keep 2.0 of 2 cores busy"));
  EXPECT_THAT(crowding_note(2, 1, 2, 40), HasSubstr("train.threads = 1 "));
}

TEST(Device, OneThatIsNotThereIsRefused) {
  EXPECT_EQ(device_of("cpu"), c10::Device(c10::kCPU));
  EXPECT_THAT(test::message_of<InputError>([] { device_of("cuda:99"); }), HasSubstr("train.device: "));
  EXPECT_THAT(test::message_of<InputError>([] { device_of("cuda:99"); }), HasSubstr("cuda:99"));
}

}  // namespace
}  // namespace strait
