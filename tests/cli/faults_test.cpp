// Ranks that die, freeze, are cut off, come late, come wrong or run out of disk: the others say so and end,
// nothing is lost. Real processes on this machine.

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>

#include "tests/cli/distributed_runs.h"
#include "tests/support/variable.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::MatchesRegex;

/// One line of a rank that says at which boundary, or where else the ranks meet, and which peer.
std::string loss_of_peer(int rank) {
  return "strait: rank " + std::to_string(rank) +
         ", (boundary layer[123], [^\n]*|[^\n]*): (rank [0-3]|another rank) (is gone|was silent)[^\n]*\n";
}

class Faults : public test::DistributedRuns {
 protected:
  /// Sends the signal to each rank in turn, soon after a checkpoint, and goes on with all.
  void expect_resumed_after(int signal, const std::string& timeout) const {
    // Some 10 of 80 steps happen before each signal, so that no run is done by then.
    const std::vector<std::string> epochs = {"--resume", "--set", "train.epochs=10"};
    std::vector<std::string> flags = epochs;
    for (const std::string& set : {std::string("checkpoint.every_steps=3"), "pipeline.timeout=" + timeout}) {
      flags.insert(flags.end(), {"--set", set});
    }
    for (int victim = 0; victim < kRanks; ++victim) {
      const auto before = checkpoints("run");
      auto all = start("run", flags);
      wait_for_checkpoint("run", before, [&] { return all.have_all_ended(); });
      all.at(victim).send(signal);
      for (int rank = 0; rank < kRanks; ++rank) {
        if (rank == victim) continue;
        const auto result = all.at(rank).wait(kLimit);
        EXPECT_EQ(result.status, 1) << "rank " << rank;
        EXPECT_THAT(result.err, MatchesRegex(loss_of_peer(rank)));
      }
      EXPECT_EQ(status("run").at("status"), victim == 0 ? "running" : "failed");
      all.at(victim).send(SIGKILL);
      EXPECT_EQ(all.at(victim).wait().status, 128 + SIGKILL);
    }
    const auto last = train_with_ranks("run", epochs);
    EXPECT_THAT(last.at(0).out, HasSubstr("resuming from"));
    EXPECT_EQ(train("alone", epochs).status, 0);
    expect_equal_runs("alone", "run");
  }
};

TEST_F(Faults, AKilledRankEndsTheOthersAndTheRunGoesOn) { expect_resumed_after(SIGKILL, "10s"); }

TEST_F(Faults, AFrozenRankEndsTheOthersAndTheRunGoesOn) { expect_resumed_after(SIGSTOP, "3s"); }

TEST_F(Faults, ARankThatCannotHearThatAllAreToStopEndsTheOthers) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    const std::string out = signal == SIGKILL ? "killed" : "frozen";
    auto all = start(out, {"--set", "train.epochs=1000", "--set", "checkpoint.every_steps=3", "--set",
                           "pipeline.timeout=3s"});
    wait_for_checkpoint(out, {}, [&] { return all.have_all_ended(); });
    all.at(2).send(signal);
    all.at(0).send(SIGTERM);
    for (const int rank : {0, 1, 3}) {
      const auto result = all.at(rank).wait(kLimit);
      EXPECT_EQ(result.status, 1) << "rank " << rank;
      EXPECT_THAT(result.err, MatchesRegex(loss_of_peer(rank)));
    }
    all.at(2).send(SIGKILL);
    EXPECT_EQ(all.at(2).wait().status, 128 + SIGKILL);
  }
}

TEST_F(Faults, AnotherConfigurationIsRefusedByAll) {
  auto all = ranks();
  for (const int rank : {0, 1, 3}) all.start(rank, arguments("run"));
  all.start(2, arguments("run", {"--set", "train.epochs=4"}));
  for (const auto& [rank, result] : expect_all(all, 1)) {
    const std::string found =
        rank == 2 ? "rank 0 has train.epochs = 3, this one 4" : "rank 2 has train.epochs = 4, this one 3";
    EXPECT_EQ(result.err, "strait: rank " + std::to_string(rank) + ": " + found + "; all must be the same\n");
  }
  EXPECT_FALSE(fs::exists(dir_ / "run"));
}

TEST_F(Faults, NcclWithoutCardsIsRefusedByAll) {
  const std::vector<std::string> by_nccl = {"--set", "pipeline.transport=nccl", "--set", "train.device=cpu"};
  auto all = start("run", by_nccl);
  for (const auto& [rank, result] : expect_all(all, 2)) {
    EXPECT_THAT(result.err, HasSubstr("pipeline.transport: \"nccl\" expects a CUDA device in both processes"))
        << rank;
  }
  EXPECT_EQ(train("alone", by_nccl).status, 0) << "where nothing crosses";
}

TEST_F(Faults, OtherFlagsAreRefusedByAll) {
  auto all = ranks();
  for (const int rank : {0, 1, 2}) all.start(rank, arguments("run", {"--resume"}));
  all.start(3, arguments("run"));
  const auto results = expect_all(all, 1);
  EXPECT_EQ(results.at(0).err,
            "strait: rank 0: rank 3 has flags \"\", this one \"--resume\"; all must be the same\n");
  EXPECT_EQ(results.at(3).err,
            "strait: rank 3: rank 0 has flags \"--resume\", this one \"\"; all must be the same\n");
}

TEST_F(Faults, AnotherWorldSizeIsRefused) {
  auto all = ranks();
  const auto flags = arguments("run", {"--set", "pipeline.timeout=3s"});
  for (const int rank : {0, 1, 2}) all.start(rank, flags);
  all.start(3, flags, {"WORLD_SIZE=5"});
  const auto results = all.wait(kLimit);
  EXPECT_EQ(results.at(3).status, 2);
  EXPECT_EQ(results.at(3).err,
            "strait: WORLD_SIZE (launch -n): expected 4 processes, one for each of the 4 stages that "
            "model.cuts makes, or "
            "1; found 5\n");
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(results.at(rank).status, 1);
    EXPECT_THAT(results.at(rank).err, HasSubstr("of 4 ranks these did not come within 3 s: 3\n"));
  }
}

TEST_F(Faults, ARankThatIsTakenIsRefusedAndTheOthersTrain) {
  auto all = ranks();
  const auto flags = arguments("run", {"--set", "train.epochs=1"});
  for (const int rank : {0, 1, 2}) all.start(rank, flags);
  test::Process twin(STRAIT_PROGRAM, flags, all.variables(1));
  const auto refused = [](const test::ProcessResult& result) {
    return result.err.find("strait: rank 1: another process has taken this rank of the group at 127.0.0.1:") ==
           0;
  };
  // One of the two is refused while the last rank is still to come.
  while (!twin.has_ended() && !all.at(1).has_ended()) std::this_thread::sleep_for(1ms);
  all.start(3, flags);
  const auto second = twin.wait(kLimit);
  const auto results = all.wait(kLimit);
  EXPECT_EQ(second.status + results.at(1).status, 2);
  EXPECT_NE(refused(second), refused(results.at(1)));
  for (const int rank : {0, 2, 3}) EXPECT_EQ(results.at(rank).status, 0) << results.at(rank).err;
}

bool has_socket(pid_t process) {
  std::error_code ignored;  // the files change meanwhile
  for (fs::directory_iterator file("/proc/" + std::to_string(process) + "/fd", ignored), end; file != end;
       file.increment(ignored)) {
    if (fs::read_symlink(file->path(), ignored).string().starts_with("socket:")) return true;
  }
  return false;
}

TEST_F(Faults, ALateRankIsWaitedFor) {
  auto all = ranks();
  const auto flags = arguments("run", {"--set", "train.epochs=1"});
  for (const int rank : {1, 2, 3}) all.start(rank, flags);
  // A rank that has come tries to connect, again and again.
  for (const int rank : {1, 2, 3}) {
    while (!has_socket(all.at(rank).id()) && !all.at(rank).has_ended()) std::this_thread::sleep_for(1ms);
  }
  all.start(0, flags);  // with the store
  expect_all(all, 0);
  EXPECT_EQ(status("run").at("status"), "done");
}

TEST_F(Faults, ARankThatNeverComesIsNamed) {
  auto without_last = ranks();
  auto without_first = ranks();
  const auto flags = arguments("run", {"--set", "pipeline.timeout=2s"});
  for (const int rank : {0, 1, 2}) without_last.start(rank, flags);
  for (const int rank : {1, 2}) without_first.start(rank, flags);
  for (const auto& [rank, result] : expect_all(without_last, 1)) {
    EXPECT_THAT(result.err, HasSubstr("of 4 ranks these did not come within 2 s: 3\n"));
  }
  for (const auto& [rank, result] : expect_all(without_first, 1)) {
    EXPECT_THAT(result.err, MatchesRegex("strait: rank " + std::to_string(rank) +
                                         ": nothing answers at 127.0.0.1:[0-9]+ [^\n]*\n"));
  }
}

/// Listens at a port of the loopback interface and never says a word.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const place = reinterpret_cast<sockaddr*>(&address);
    if (bind(socket_, place, size) != 0 || listen(socket_, 16) != 0 ||
        getsockname(socket_, place, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(address.sin_port);
  }
  ~Listener() { close(socket_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  uint16_t port() const { return port_; }

 private:
  int socket_;
  uint16_t port_ = 0;
};

TEST_F(Faults, APortWithAnotherProgramIsSaidToBe) {
  const test::Variable secret("STRAIT_SECRET", "a secret of this test");
  const Listener other;
  test::RankProcesses all(STRAIT_PROGRAM, kRanks, other.port());
  all.start_all(arguments("run", {"--set", "pipeline.timeout=8s"}));
  const std::string place = "127.0.0.1:" + std::to_string(other.port()) + " (MASTER_ADDR:MASTER_PORT)";
  const auto results = expect_all(all, 1);
  EXPECT_EQ(results.at(0).err,
            "strait: rank 0 cannot listen at " + place + ": another program listens there\n");
  for (const int rank : {1, 2, 3}) {
    EXPECT_EQ(results.at(rank).err, "strait: rank " + std::to_string(rank) + ": what listens at " + place +
                                        " does not answer as rank 0 would\n");
  }
}

// A limit on the size of files stands for the full disk.
TEST_F(Faults, AFullDiskOfOneRankLeavesTheCheckpointBefore) {
  train_with_ranks("run", {"--set", "train.epochs=1"});
  const fs::path part = dir_ / "run/checkpoint/rank-2/epoch-0001-batch-00000";
  const std::string weights = test::read_file(part / "model.safetensors");
  auto all = ranks();
  for (const int rank : {0, 1, 3}) all.start(rank, arguments("run", {"--resume"}));
  const std::string script = "ulimit -f " + std::to_string(weights.size() / 2048) +
                             "; exec " STRAIT_PROGRAM " train " + config_ + " --resume --out " +
                             (dir_ / "run").string();
  test::Process full("/bin/bash", {"-c", script}, all.variables(2));
  const auto failed = full.wait(kLimit);
  EXPECT_EQ(failed.status, 1);
  EXPECT_THAT(failed.err,
              MatchesRegex("strait: [^\n]*rank-2/[^\n]*model.safetensors: cannot be written: File too "
                           "large\n"));
  for (const auto& [rank, result] : expect_all(all, 1)) {
    EXPECT_THAT(result.err, MatchesRegex("strait: (rank 2 gave up|[^\n]*the first to fail was rank 2): "
                                         "[^\n]*cannot be written: File too large\n"));
  }
  EXPECT_EQ(status("run").at("status"), "failed");
  EXPECT_THAT(checkpoints("run"), testing::Contains("epoch-0001-batch-00000"));
  EXPECT_EQ(test::read_file(part / "model.safetensors"), weights);
  const auto resumed = train_with_ranks("run", {"--resume"});
  EXPECT_THAT(resumed.at(0).out, HasSubstr("epoch-0001-batch-00000"));
  expect_equal_runs(whole(), "run");
}

TEST_F(Faults, ADivergenceIsOneForAll) {
  auto all = start("run", {"--set", "train.optimizer.lr=1e30"});
  for (const auto& [rank, result] : expect_all(all, 3)) {
    EXPECT_THAT(result.err,
                MatchesRegex("strait: training diverged: [^\n]*; what was measured is in [^\n]*\n"));
  }
  EXPECT_EQ(status("run").at("status"), "diverged");
}

TEST_F(Faults, ACutLinkEndsTheOthers) {
  const auto result =
      test::run_process("/bin/bash", {"tests/cli/cut_link.sh", STRAIT_PROGRAM, config_, dir_ / "run"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(test::read_file(dir_ / "run" / ("err-" + std::to_string(rank))),
                MatchesRegex(loss_of_peer(rank)));
    EXPECT_EQ(test::read_file(dir_ / "run" / ("status-" + std::to_string(rank))), "1\n");
  }
}

TEST_F(Faults, RanksBehindRoutersSpeakThroughRankZero) {
  std::string config = kConfig;
  config.insert(config.find("width = 4"), "cuts = ['layer1.0', 'layer1', 'layer2', 'layer3']\n");
  test::write_file(config_, config);
  const auto result =
      test::run_process("/bin/bash", {"tests/cli/behind_routers.sh", STRAIT_PROGRAM, config_, dir_ / "run"});
  EXPECT_EQ(result.err, "");
  for (int rank = 0; rank < 5; ++rank) {
    EXPECT_EQ(test::read_file(dir_ / "run" / fmt::format("err-{}", rank)), "");
    EXPECT_EQ(test::read_file(dir_ / "run" / fmt::format("status-{}", rank)), "0\n");
  }
  EXPECT_THAT(test::read_file(dir_ / "run" / "out-0"),
              HasSubstr("ranks 2 and 3 cannot reach each other and speak through rank 0\n"));
  const auto links = test::metrics_of(dir_ / "run").back().at("links");
  ASSERT_EQ(links.size(), 1U);  // the other neighbours reach each other
  EXPECT_EQ(links[0].at("route"), "relayed");
  EXPECT_EQ(train("alone").status, 0);
  expect_equal_runs("alone", "run");
}

}  // namespace
}  // namespace strait
