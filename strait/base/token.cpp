#include "strait/base/token.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "strait/base/error.h"

namespace strait {

std::string random_token() {
  std::array<uint64_t, 2> bits{};
  if (getrandom(bits.data(), sizeof(bits), 0) != static_cast<ssize_t>(sizeof(bits))) {
    throw Error("there are no random numbers: {}", std::strerror(errno));
  }
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

}  // namespace strait
