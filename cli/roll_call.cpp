#include "cli/roll_call.h"

#include <fmt/format.h>

#include <string>

#include "cli/output.h"
#include "strait/base/stop_signal.h"
#include "strait/base/text.h"
#include "strait/transport/join_group.h"

namespace strait::cli {
namespace {

constexpr double kBetweenWords = 3;  // seconds

}  // namespace

void RollCall::operator()(const std::vector<int>& missing) {
  if (stop_requested()) throw StoppedWaiting("stopped before all ranks had come");
  if ((rank_ > 0 && missing.front() > 0) || since_said_.seconds() < kBetweenWords) return;
  std::vector<std::string> ranks;
  ranks.reserve(missing.size());
  for (const int rank : missing) ranks.push_back(std::to_string(rank));
  print(fmt::format("waiting for rank{} {}\n", ranks.size() == 1 ? "" : "s", list_of(ranks)));
  flush_output();
  since_said_ = Stopwatch();
}

}  // namespace strait::cli
