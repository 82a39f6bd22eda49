#include "strait/transport/handshake.h"
#include "strait/transport/join_group.h"

namespace strait {

std::shared_ptr<Group> join_from_environment(const JoinOptions& options) {
  const auto membership = membership_of_process();
  if (!membership || membership->size == 1) return std::make_shared<SingleProcessGroup>();
  const Handshake mine{.processes = membership->size, .flags = {}, .settings = options.settings};
  const auto check = [&](const std::vector<std::string>& handshakes) {
    check_handshakes(membership->rank, handshakes);
  };
  const auto waiting = [&](const std::vector<int>& missing) {
    if (options.waiting) options.waiting(missing);
  };
  return join_group(options.carriage, *membership, options.timeout, mine.text(), check, waiting);
}

}  // namespace strait
