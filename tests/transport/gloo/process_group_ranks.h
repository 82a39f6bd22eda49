#pragma once

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "strait/transport/process_group.h"
#include "tests/transport/ranks.h"

namespace strait::test {

/// A rank's process group and its store, as torch.distributed.init_process_group("gloo") makes them.
struct UsersProcessGroup {
  c10::intrusive_ptr<c10d::Store> store;
  c10::intrusive_ptr<c10d::ProcessGroup> group;
};

/// Ranks that have a process group, each in a thread of its own.
class ProcessGroupRanks {
 public:
  explicit ProcessGroupRanks(int count, std::chrono::milliseconds timeout = std::chrono::seconds(20))
      : count_(count), timeout_(timeout) {}

  /// Lets every rank do `work` with a group over its process group. Gives what each threw.
  std::vector<std::string> run(const std::function<void(Group& group)>& work) const {
    return run_over([&](const UsersProcessGroup& users) {
      run_as_rank(*group_over(users.group, users.store, {.timeout = timeout_}), work);
    });
  }

  /// The same with process groups, of which `work` makes what it wants. The first rank serves the store.
  std::vector<std::string> run_over(const std::function<void(const UsersProcessGroup& users)>& work) const {
    c10d::TCPStoreOptions options;
    options.port = free_port();
    options.waitWorkers = false;
    options.isServer = true;
    c10::intrusive_ptr<c10d::Store> server = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
    options.isServer = false;
    return run_in_threads(count_, [&](int rank) {
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
  int count_;
  std::chrono::milliseconds timeout_;
};

}  // namespace strait::test
