#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "strait/transport/join_group.h"
#include "strait/transport/port.h"

namespace strait::test {

/// Ranks of one group, each in a thread of its own, which meet at a free port of the loopback interface.
class Ranks {
 public:
  explicit Ranks(int count, std::chrono::milliseconds timeout = std::chrono::seconds(20))
      : count_(count), timeout_(timeout), port_(free_port()) {}

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
    std::vector<std::string> errors(static_cast<size_t>(count_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count_; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          const auto group = join_group(
              membership(rank), timeout_, "", [](const auto&) {}, [](const auto&) {});
          run_one(*group, work);
        } catch (const std::exception& error) {
          errors[static_cast<size_t>(rank)] = error.what();
        }
      });
    }
    for (auto& thread : threads) thread.join();
    return errors;
  }

 private:
  static void run_one(Group& group, const std::function<void(Group& group)>& work) {
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

  int count_;
  std::chrono::milliseconds timeout_;
  uint16_t port_;
};

}  // namespace strait::test
