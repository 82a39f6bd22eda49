#include "tests/support/rank_processes.h"

#include <algorithm>

namespace strait::test {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

RankProcesses::RankProcesses(std::string program, int count, uint16_t port)
    : program_(std::move(program)), count_(count), port_(port) {}

std::vector<std::string> RankProcesses::variables(int rank) const {
  const std::string size = std::to_string(count_);
  return {"RANK=" + std::to_string(rank),      "WORLD_SIZE=" + size,    "LOCAL_RANK=" + std::to_string(rank),
          "LOCAL_WORLD_SIZE=" + size,          "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + std::to_string(port_),
          "TORCHELASTIC_USE_AGENT_STORE=False"};
}

Process& RankProcesses::start(int rank, const std::vector<std::string>& arguments,
                              const std::vector<std::string>& variables) {
  auto all = this->variables(rank);
  all.insert(all.end(), variables.begin(), variables.end());
  return processes_.try_emplace(rank, program_, arguments, all).first->second;
}

void RankProcesses::replace(int rank, const std::vector<std::string>& arguments) {
  processes_.at(rank).wait();
  processes_.erase(rank);
  start(rank, arguments);
}

void RankProcesses::start_all(const std::vector<std::string>& arguments) {
  for (int rank = 0; rank < count_; ++rank) start(rank, arguments);
}

bool RankProcesses::have_all_ended() {
  return std::ranges::all_of(processes_, [](auto& item) { return item.second.has_ended(); });
}

std::map<int, ProcessResult> RankProcesses::wait(milliseconds limit) {
  const auto end = steady_clock::now() + limit;
  std::map<int, ProcessResult> results;
  for (auto& [rank, process] : processes_) {
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    results[rank] = process.wait(std::max(left, milliseconds(0)));
  }
  return results;
}

}  // namespace strait::test
