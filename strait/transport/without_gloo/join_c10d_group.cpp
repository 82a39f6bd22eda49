#include "strait/transport/c10d/join_c10d_group.h"

namespace strait {

std::unique_ptr<Group> join_c10d_group(const Membership& /*membership*/, std::chrono::milliseconds /*timeout*/,
                                       const std::string& /*handshake*/, const CheckHandshakes& /*check*/,
                                       const WaitingFor& /*waiting*/) {
  throw InputError(
      "pipeline.transport: \"c10d\" needs a LibTorch with Gloo's headers, such as Debian's libtorch-dev, and "
      "this strait was built with one that has none; \"tcp\" needs nothing");
}

}  // namespace strait
