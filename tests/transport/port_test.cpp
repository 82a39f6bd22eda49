#include "strait/transport/port.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "strait/transport/socket.h"

namespace strait {
namespace {

// A socket that names no port could else take it before its user listens there.
TEST(FreePort, IsNoneThatTheKernelGivesToWhoNamesNone) {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int first = 0;
  int last = 0;
  ASSERT_TRUE(range >> first >> last);
  for (int i = 0; i < 100; ++i) {
    const uint16_t port = free_port();
    const bool leaves_none = first <= 16384;
    EXPECT_TRUE(port < first || port > last || leaves_none) << port << " of " << first << " to " << last;
    EXPECT_EQ(port_of(listen_at("127.0.0.1", port)), port);
  }
}

TEST(FreePort, SeveralWhoAskAtOnceHardlyGetTheSame) {
  std::set<uint16_t> ports;
  for (int i = 0; i < 20; ++i) ports.insert(free_port());
  EXPECT_GT(ports.size(), 15U);
}

}  // namespace
}  // namespace strait
