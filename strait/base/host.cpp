#include "strait/base/host.h"

#include <unistd.h>

#include <array>

namespace strait {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace strait
