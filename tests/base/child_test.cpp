#include "strait/base/child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "strait/base/cores.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

Child::End wait_for(Child& child) {
  for (;;) {
    if (const auto end = child.poll()) return *end;
    std::this_thread::yield();
  }
}

class ChildProcess : public testing::Test {
 protected:
  Child::Command shell(const std::string& script) {
    return {.words = {"/bin/sh", "-c", script}, .output = dir_ / "log", .cores = {available_cores().back()}};
  }

  Child::End run(const std::string& script) {
    Child child(shell(script));
    return wait_for(child);
  }

  std::string log() { return test::read_file(dir_ / "log"); }

  test::TempDir dir_;
};

TEST_F(ChildProcess, GivesItsExitStatus) {
  EXPECT_EQ(run("exit 3").status, 3);
  EXPECT_EQ(run("exit 3").signal, 0);
  EXPECT_EQ(run("exit 0").status, 0);
}

TEST_F(ChildProcess, GivesTheSignalThatEndedIt) { EXPECT_EQ(run("kill -KILL $$").signal, SIGKILL); }

TEST_F(ChildProcess, WritesBothOutputsAtTheEndOfTheFile) {
  test::write_file(dir_ / "log", "before\n");
  run("echo out; echo err >&2; read line || echo no input");
  EXPECT_EQ(log(), "before\nout\nerr\nno input\n");
}

TEST_F(ChildProcess, RunsOnItsCores) {
  run("exec nproc");
  EXPECT_EQ(log(), "1\n");
}

TEST_F(ChildProcess, EndsWith127WhenThereIsNoSuchProgram) {
  Child child({.words = {"/no/such/program"}, .output = dir_ / "log", .cores = available_cores()});
  EXPECT_EQ(wait_for(child).status, 127);
}

TEST_F(ChildProcess, StopsWhenAskedTo) {
  Child child(shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"));
  while (!std::filesystem::exists(dir_ / "log") || log().empty()) std::this_thread::yield();
  EXPECT_FALSE(child.poll().has_value());
  child.ask_to_stop();
  EXPECT_EQ(wait_for(child).status, 7);
}

TEST_F(ChildProcess, IsAskedToStopBeforeItsProgramRuns) {
  std::signal(SIGTERM, [](int) {});  // a handler of this program must not swallow the signal
  Child child(shell("while :; do sleep 0.01; done"));
  child.ask_to_stop();
  EXPECT_EQ(wait_for(child).signal, SIGTERM);
  std::signal(SIGTERM, SIG_DFL);
}

TEST_F(ChildProcess, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    const Child child(shell("echo $$; while :; do sleep 0.01; done"));
    while (!std::filesystem::exists(dir_ / "log") || !log().ends_with('\n')) std::this_thread::yield();
    pid = std::stoi(log());
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST_F(ChildProcess, DoesNotOutliveTheThreadThatStartedIt) {
  std::unique_ptr<Child> child;
  std::thread([&] {
    child = std::make_unique<Child>(shell("echo ready; while :; do sleep 0.01; done"));
    while (!std::filesystem::exists(dir_ / "log") || log().empty()) std::this_thread::yield();
  }).join();
  EXPECT_EQ(wait_for(*child).signal, SIGKILL);
}

}  // namespace
}  // namespace strait
