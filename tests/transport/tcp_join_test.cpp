// Who is let in at the port where ranks meet, who is not, and what either hears.

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <future>

#include "strait/base/random.h"
#include "strait/transport/tcp/meeting.h"
#include "strait/transport/tcp/secret.h"
#include "tests/support/temp_dir.h"
#include "tests/support/variable.h"
#include "tests/transport/link_cutter.h"
#include "tests/transport/ranks.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr auto kNobodyWaits = 20s;  // nobody here comes near it
constexpr const char* kSecret = "a secret of this test";

/// What a rank hears that joins in this way.
std::string join(const Membership& member, milliseconds timeout = kNobodyWaits,
                 const std::string& handshake = "") {
  try {
    const auto group = join_group(
        Carrier::tcp, member, timeout, handshake, [](const auto&) {}, [](const auto&) {});
    group->gather("");
  } catch (const InputError& error) {
    return std::string("input: ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "joined";
}

/// Joining over a port with a secret, and over sockets of the file system without one.
class TcpJoin : public testing::TestWithParam<bool> {
 protected:
  static std::string place(const test::Ranks& ranks) {
    return fmt::format("127.0.0.1:{} (MASTER_ADDR:MASTER_PORT)", ranks.membership(0).master_port);
  }
  const test::Variable secret_{kSecretVariable, GetParam() ? kSecret : nullptr};
};

INSTANTIATE_TEST_SUITE_P(Over, TcpJoin, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tls" : "Sockets"; });

TEST_P(TcpJoin, SaysWhoIsMissing) {
  const test::Ranks ranks(3, 1s);
  std::string second;
  std::thread other([&] { second = join(ranks.membership(2), 1s); });
  EXPECT_EQ(join(ranks.membership(0), 1s), "rank 0: of 3 ranks these did not come within 1 s: 1");
  other.join();
  EXPECT_EQ(second, "rank 2: of 3 ranks these did not come within 1 s: 1");
}

TEST_P(TcpJoin, TellsEveryRankMeanwhileForWhomItWaits) {
  const test::Ranks ranks(3);
  const auto errors = test::run_in_threads(3, [&](int rank) {
    if (rank == 1) std::this_thread::sleep_for(700ms);
    std::vector<int> last;
    const auto group = join_group(
        Carrier::tcp, ranks.membership(rank), kNobodyWaits, "", [](const auto&) {},
        [&](const auto& missing) { last = missing; });
    if (rank != 1) {
      EXPECT_EQ(last, std::vector<int>{1});
    }
    group->gather("");
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST_P(TcpJoin, SaysWhereNobodyAnswers) {
  const test::Ranks ranks(2);
  EXPECT_EQ(join(ranks.membership(1), 1s),
            "rank 1: nothing answers at " + place(ranks) + ", where rank 0 should be, for 1 s");
}

TEST(TcpJoinByName, SaysThatAHostHasNoAddress) {
  const test::Variable secret(kSecretVariable, kSecret);
  Membership member = test::Ranks(2).membership(1);
  member.master_address = std::string(64, 'x');  // too long for a name, so that nobody is asked for it
  EXPECT_EQ(join(member, 1s),
            fmt::format("rank 1: the host of {}, where rank 0 should be, has no known address: "
                        "expected a name or an address",
                        member.rendezvous_endpoint()));
}

TEST_P(TcpJoin, EveryRankHearsThatOneDiffers) {
  const test::Ranks ranks(3);
  const auto errors = test::run_in_threads(3, [&](int rank) {
    join_group(
        Carrier::tcp, ranks.membership(rank), kNobodyWaits, rank == 1 ? "other" : "same",
        [&](const auto& handshakes) {
          for (const auto& handshake : handshakes) {
            if (handshake != handshakes[0]) throw Error("rank 1 is another one");
          }
        },
        [](const auto&) {});
  });
  EXPECT_THAT(errors, Each(testing::StrEq("rank 1 is another one")));
}

TEST_P(TcpJoin, TheSecondOfARankIsTurnedAwayAndTheFirstGoesOn) {
  const test::Ranks ranks(3);
  std::vector<std::string> heard(3);
  std::vector<std::thread> threads;
  for (const int rank : {0, 1}) threads.emplace_back([&, rank] { heard[rank] = join(ranks.membership(rank)); });
  std::this_thread::sleep_for(300ms);  // the first one comes first
  const std::string second = join(ranks.membership(1));
  threads.emplace_back([&] { heard[2] = join(ranks.membership(2)); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(second, "input: rank 1: another process has taken this rank of the group at " + place(ranks));
  EXPECT_THAT(heard, Each("joined"));
}

TEST_P(TcpJoin, WhoIsStoppedBeforeAllHaveComeIsNamed) {
  const test::Ranks ranks(3);
  std::string first;
  std::thread rank0([&] { first = join(ranks.membership(0)); });
  EXPECT_THROW(join_group(
                   Carrier::tcp, ranks.membership(1), kNobodyWaits, "", [](const auto&) {},
                   [](const auto& missing) {
                     if (missing == std::vector<int>{2}) throw StoppedWaiting("enough");
                   }),
               StoppedWaiting);
  rank0.join();
  EXPECT_EQ(first, "rank 0: rank 1 came, but has left");
}

TEST_P(TcpJoin, ConnectionsAreFromOneToTheMost) {
  const test::Ranks ranks(2, 1s);
  for (const int connections : {0, kMostConnections + 1}) {
    try {
      join_group(
          {Carrier::tcp, connections}, ranks.membership(0), 1s, "", [](const auto&) {}, [](const auto&) {});
      ADD_FAILURE() << connections;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), fmt::format("connections: expected 1 to 64, found {}", connections));
    }
  }
}

TEST_P(TcpJoin, AnotherNumberOfProcessesIsTurnedAway) {
  const test::Ranks ranks(2, 1s);
  Membership other = ranks.membership(1);
  other.size = 3;
  std::string first;
  std::thread rank0([&] { first = join(ranks.membership(0), 2s); });
  EXPECT_EQ(join(other),
            "rank 1: the group at " + place(ranks) + " has another number of processes (WORLD_SIZE)");
  rank0.join();
  EXPECT_EQ(first, "rank 0: of 2 ranks these did not come within 2 s: 1");
}

/// An address of the loopback interface: of IPv6, where this machine has that.
std::string newest_loopback() {
  try {
    listen_at("::1", 0);
    return "::1";
  } catch (const Error&) {
    return "127.0.0.1";
  }
}

TEST(TcpJoinOverIp, RanksReachEachOtherWithoutTheFirst) {
  const test::Variable secret(kSecretVariable, kSecret);
  for (const std::string& address : {std::string("127.0.0.1"), newest_loopback()}) {
    const test::Ranks ranks(3);
    const auto errors = test::run_in_threads(3, [&](int rank) {
      Membership member = ranks.membership(rank);
      member.master_address = address;
      const auto group = join_group(
          Carrier::tcp, member, kNobodyWaits, "", [](const auto&) {}, [](const auto&) {});
      at::Tensor passed = at::ones({1});
      if (rank == 1) group->send(passed, 2, "one");
      if (rank == 2) group->receive(passed, 1, "one");
      group->gather("");
      for (const auto& link : group->links()) EXPECT_EQ(link.route, Route::direct) << address << link.peer;
      EXPECT_EQ(group->links().size(), 2);
      group->gather("");
    });
    EXPECT_THAT(errors, Each(IsEmpty())) << address;
  }
}

TEST(TcpJoinOverALink, ARankThatDiesBeforeAllHaveComeIsNamed) {
  const test::Variable secret(kSecretVariable, kSecret);
  const test::Ranks ranks(3);
  std::string first;
  std::thread rank0([&] { first = join(ranks.membership(0)); });
  Membership member = ranks.membership(2);
  auto link = std::make_unique<test::LinkCutter>(member.master_port);
  member.master_port = link->port();
  std::thread rank2([&] { join(member); });
  while (link->connections() == 0) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(500ms);
  link.reset();  // and with it the port: for both, the other process might as well have died
  rank0.join();
  rank2.join();
  EXPECT_EQ(first, "rank 0: rank 2 came, but it ended without a word");
}

TEST(TcpMeeting, RanksOfSeveralMachinesNeedASecret) {
  const test::Variable none(kSecretVariable, nullptr);
  Membership member = test::Ranks(2).membership(1);
  member.local_size = 1;
  member.master_address = "10.0.0.1";
  EXPECT_THAT(join(member),
              StartsWith("input: STRAIT_SECRET: not set, and ranks of several machines need one secret"));
  const test::Variable brief(kSecretVariable, "too short");
  EXPECT_EQ(join(member), "input: STRAIT_SECRET: expected a secret of at least 16 characters, found 9");
}

TEST(TcpMeeting, ASecretMayLieInAFileThatOthersCannotOpen) {
  const test::Variable none(kSecretVariable, nullptr);
  const test::TempDir dir;
  const std::string file = (dir / "key").string();
  std::ofstream(file) << kSecret << '\n';
  const test::Variable named(kSecretFileVariable, file.c_str());
  chmod(file.c_str(), 0644);
  EXPECT_THROW(secret_of_process(), InputError);
  chmod(file.c_str(), 0600);
  EXPECT_EQ(secret_of_process(), kSecret);
  std::filesystem::remove(file);
  EXPECT_THROW(secret_of_process(), InputError);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);  // nobody is to wait for one who writes into it
  EXPECT_THROW(secret_of_process(), InputError);
}

TEST(TcpMeeting, AFolderThatOthersCanOpenIsRefused) {
  const test::Variable none(kSecretVariable, nullptr);
  const test::TempDir dir;
  const test::Variable runtime("XDG_RUNTIME_DIR", dir.path().c_str());
  const std::string folder = (dir / "strait").string();
  mkdir(folder.c_str(), 0755);
  chmod(folder.c_str(), 0755);
  EXPECT_THAT(join(test::Ranks(2).membership(0)), StartsWith(folder + ": expected a folder that only user "));
}

TEST(TcpMeeting, AFolderThatTheLastToLeaveHasTakenAwayIsMadeAgain) {
  const test::TempDir dir;
  const std::string folder = (dir / "29500").string();
  const tcp::RankPlace place(folder, 0);
  struct stat made {};
  ASSERT_EQ(stat(folder.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0700U);
  EXPECT_THROW(tcp::RankPlace(folder, 0), tcp::PlaceTaken);
  EXPECT_THROW(tcp::RankPlace((dir / "none/29500").string(), 0), Error);
}

TEST(TcpMeeting, WhoComesFindsAFolderHoweverOftenTheLastTakesItAway) {
  const test::TempDir dir;
  const auto errors = test::run_in_threads(3, [&](int rank) {
    for (int round = 0; round < 2000; ++round) const tcp::RankPlace place((dir / "29500").string(), rank);
  });
  EXPECT_THAT(errors, Each(IsEmpty()));
}

TEST(TcpMeeting, NothingIsLeftInTheFolder) {
  const test::Variable none(kSecretVariable, nullptr);
  const test::TempDir dir;
  const test::Variable runtime("XDG_RUNTIME_DIR", dir.path().c_str());
  EXPECT_THAT(test::Ranks(2).run([](Group&) {}), Each(IsEmpty()));
  EXPECT_TRUE(std::filesystem::is_empty(dir / "strait"));
}

/// Strangers at the port while the second of two ranks is missing, and what the ranks do then.
class Strangers : public testing::Test {
 protected:
  static constexpr auto kPatience = 15s;
  void SetUp() override {
    first_ = std::async(std::launch::async, [&] { return join(ranks_.membership(0), kPatience); });
  }

  Socket connect() const {
    auto socket = connect_to("127.0.0.1", ranks_.membership(0).master_port, soon());
    while (!socket) socket = connect_to("127.0.0.1", ranks_.membership(0).master_port, soon());
    return std::move(*socket);
  }

  static Deadline soon() { return std::chrono::steady_clock::now() + kNobodyWaits; }

  /// Whether the other side closes within a moment; it sends at most an alert before.
  static bool is_turned_away(const Socket& socket) {
    std::array<char, 4096> bytes{};
    return !receive_all(socket, bytes, std::chrono::steady_clock::now() + 10s);
  }

  void expect_the_ranks_to_meet() {
    EXPECT_EQ(join(ranks_.membership(1)), "joined");
    EXPECT_EQ(first_.get(), "joined");
  }

  const test::Variable secret_{kSecretVariable, kSecret};
  const test::Ranks ranks_{2};
  std::future<std::string> first_;
};

TEST_F(Strangers, GarbageIsTurnedAwayAtOnce) {
  CounterRandom random(5);
  for (int i = 0; i < 50; ++i) {
    const Socket socket = connect();
    std::string noise(1 + random.below(3000), '\0');
    for (char& byte : noise) byte = static_cast<char>(random.below(256));
    if (i % 3 == 0) noise = "GET / HTTP/1.1\r\n\r\n";
    if (i % 3 == 1) noise.insert(0, "\x16\x03\x01\x00\x05", 5);  // as TLS begins
    send_all(socket, noise, soon());
    shutdown(socket.descriptor(), SHUT_WR);
    EXPECT_TRUE(is_turned_away(socket)) << i;
  }
  expect_the_ranks_to_meet();
}

TEST_F(Strangers, SilenceIsTurnedAwayAfterAMoment) {
  const Socket silent = connect();
  const Socket half = connect();
  send_all(half, std::string("\x16\x03\x01\x02\x00\x01", 6), soon());
  EXPECT_TRUE(is_turned_away(silent));
  EXPECT_TRUE(is_turned_away(half));
  expect_the_ranks_to_meet();
}

TEST_F(Strangers, AThousandOfThemKeepNobodyOut) {
  std::vector<Socket> crowd;
  for (int i = 0; i < 1000; ++i) crowd.push_back(connect());
  expect_the_ranks_to_meet();
}

TEST_F(Strangers, WhoHasAnotherSecretHearsSoAndNobodyElseSuffers) {
  const Membership member = ranks_.membership(1);
  connect();  // so that rank 0 has read its own
  std::string error;
  {
    const test::Variable other(kSecretVariable, "another secret of this test");
    error = join(member);
  }
  EXPECT_EQ(error,
            fmt::format("input: rank 1: rank 0 at {} has another secret; STRAIT_SECRET must be the same for "
                        "every rank",
                        member.rendezvous_endpoint()));
  expect_the_ranks_to_meet();
}

TEST_F(Strangers, RankZeroSaysWhomItRefused) {
  for (int i = 0; i < 3; ++i) send_all(connect(), "GET / HTTP/1.1\r\n\r\n", soon());
  EXPECT_THAT(
      first_.get(),
      AllOf(
          StartsWith("rank 0: of 2 ranks these did not come within 15 s: 1; one was refused, from 127.0.0.1: "),
          HasSubstr("http request")));
}

TEST(TcpStranger, WhatListensThereAndIsNoRankIsSaidToBe) {
  const test::Variable secret(kSecretVariable, kSecret);
  const Socket other = listen_at("127.0.0.1", 0);
  Membership member = test::Ranks(2).membership(1);
  member.master_port = port_of(other);
  EXPECT_EQ(join(member, 7s),
            "rank 1: what listens at " + member.rendezvous_endpoint() + " does not answer as rank 0 would");
}

TEST(TcpStranger, ATakenPortIsSaidToBe) {
  const test::Variable secret(kSecretVariable, kSecret);
  const Socket other = listen_at("127.0.0.1", 0);
  Membership member = test::Ranks(2).membership(0);
  member.master_port = port_of(other);
  EXPECT_EQ(join(member),
            "rank 0 cannot listen at " + member.rendezvous_endpoint() + ": another program listens there");
}

}  // namespace
}  // namespace strait
