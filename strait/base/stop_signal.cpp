#include "strait/base/stop_signal.h"

#include <atomic>
#include <csignal>

namespace strait {
namespace {

std::atomic<bool> stop = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

/// The second, of whatever kind, ends the program when this returns: until then it is blocked.
void on_signal(int number) {
  if (!stop.exchange(true)) return;
  signal(number, SIG_DFL);
  raise(number);
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // nohup lets it be ignored, for this program's children too.
  struct sigaction before {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

bool stop_requested() { return stop; }

}  // namespace strait
