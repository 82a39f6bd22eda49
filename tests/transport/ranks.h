#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/join_group.h"
#include "strait/transport/port.h"

namespace strait::test {

/// Does one rank's work and lets the others hear of its failure.
inline void run_as_rank(Group& group, const std::function<void(Group& group)>& work) {
  try {
    work(group);
    group.gather("");  // nobody leaves while another still needs it
  } catch (const NumericError& error) {
    group.fail({.rank = group.rank(), .diverged = true, .reason = error.what()});
    throw;
  } catch (const std::exception& error) {
    group.fail({.rank = group.rank(), .diverged = false, .reason = error.what()});
    throw;
  }
}

/// What each rank's work threw, in a thread of its own; empty where it threw nothing.
inline std::vector<std::string> run_in_threads(int ranks, const std::function<void(int rank)>& work) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        work(rank);
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return errors;
}

/// Ranks of one group, each in a thread of its own, which meet at a free port of the loopback interface.
class Ranks {
 public:
  explicit Ranks(int count, std::chrono::milliseconds timeout = std::chrono::seconds(20),
                 const Carriage& carriage = Carrier::tcp)
      : count_(count), timeout_(timeout), carriage_(carriage), port_(free_port()) {}

  Membership membership(int rank) const {
    Membership member;
    member.rank = rank;
    member.size = count_;
    member.local_size = count_;
    member.master_address = "127.0.0.1";
    member.master_port = port_;
    return member;
  }

  /// Lets every rank do `work`. Gives what each threw, empty where it threw nothing; the others hear of it.
  std::vector<std::string> run(const std::function<void(Group& group)>& work) const {
    return run_in_threads(count_, [&](int rank) {
      const auto group = join_group(
          carriage_, membership(rank), timeout_, "", [](const auto&) {}, [](const auto&) {});
      run_as_rank(*group, work);
    });
  }

 private:
  int count_;
  std::chrono::milliseconds timeout_;
  Carriage carriage_;
  uint16_t port_;
};

}  // namespace strait::test
