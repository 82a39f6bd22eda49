#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "strait/transport/join_group.h"
#include "strait/transport/port.h"
#include "strait/transport/process_group.h"

namespace strait::test {

/// What the ranks of a test make a group of: of nothing, or of a process group that they have.
enum class Meeting { join, process_group };

/// A rank's process group and its store, as torch.distributed.init_process_group("gloo") makes them.
struct UsersProcessGroup {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

/// Ranks of one group, each in a thread of its own, which meet at a free port of the loopback interface.
class Ranks {
 public:
  explicit Ranks(int count, std::chrono::milliseconds timeout = std::chrono::seconds(20),
                 Meeting meeting = Meeting::join)
      : count_(count), timeout_(timeout), meeting_(meeting), port_(free_port()) {}

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
    if (meeting_ == Meeting::process_group) {
      return run_over([&](const UsersProcessGroup& users) {
        run_one(*group_over(users.group, users.store, {.timeout = timeout_}), work);
      });
    }
    return in_threads([&](int rank) {
      const auto group = join_group(
          membership(rank), timeout_, "", [](const auto&) {}, [](const auto&) {});
      run_one(*group, work);
    });
  }

  /// The same with process groups, of which `work` makes what it wants. The first rank serves the store.
  std::vector<std::string> run_over(const std::function<void(const UsersProcessGroup& users)>& work) const {
    c10d::TCPStoreOptions options;
    options.port = port_;
    options.waitWorkers = false;
    options.isServer = true;
    c10::intrusive_ptr<c10d::Store> server = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    options.isServer = false;
    return in_threads([&](int rank) {
      UsersProcessGroup users;
      if (rank == 0) users.store = std::move(server);
      if (rank > 0) users.store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
      auto gloo = c10d::ProcessGroupGloo::Options::create();
      gloo->devices = {c10d::ProcessGroupGloo::createDeviceForHostname("127.0.0.1")};
      users.group = c10::make_intrusive<c10d::ProcessGroupGloo>(
          c10::make_intrusive<c10d::PrefixStore>("default_pg/0", users.store), rank, count_, gloo);
      work(users);
    });
  }

 private:
  /// What each rank's work threw.
  std::vector<std::string> in_threads(const std::function<void(int rank)>& work) const {
    std::vector<std::string> errors(static_cast<size_t>(count_));
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count_; ++rank) {
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
  Meeting meeting_;
  uint16_t port_;
};

}  // namespace strait::test
