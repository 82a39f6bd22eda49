#include "strait/transport/group.h"

#include "strait/transport/loopback.h"

namespace strait {

void SingleProcessGroup::send(const at::Tensor& /*tensor*/, int to, const std::string& what) {
  throw InternalError("{} was to go to rank {} of one process", what, to);
}

void SingleProcessGroup::receive(at::Tensor& /*tensor*/, int from, const std::string& what) {
  throw InternalError("{} was to come from rank {} of one process", what, from);
}

std::unique_ptr<Transport> SingleProcessGroup::make_transport(std::vector<int> /*peers*/,
                                                              std::vector<std::string> /*names*/) {
  return std::make_unique<Loopback>();
}

void run_collectively(Group& group, const std::function<void()>& work) {
  std::string reason;  // empty: it worked
  std::exception_ptr mine;
  try {
    work();
  } catch (const std::exception& error) {
    reason = error.what();
    if (reason.empty()) reason = "an error without a message";
    mine = std::current_exception();
  }
  const auto reasons = group.gather(reason);
  if (mine) std::rethrow_exception(mine);
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    if (!reasons[rank].empty()) throw Error("rank {} gave up: {}", rank, reasons[rank]);
  }
}

void in_turn(Group& group, const std::function<void()>& work) {
  for (int rank = 0; rank < group.size(); ++rank) {
    run_collectively(group, [&] {
      if (rank == group.rank()) work();
    });
  }
}

}  // namespace strait
