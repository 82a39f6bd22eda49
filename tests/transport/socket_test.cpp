#include "strait/transport/socket.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "strait/base/error.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

TEST(ListenAt, SaysThatTheProcessHasNoDescriptorLeft) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string reason = test::error_of<Error>([] { listen_at("127.0.0.1", 0); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(reason, std::strerror(EMFILE));
}

}  // namespace
}  // namespace strait
