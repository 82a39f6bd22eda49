#include <cstddef>
#include <cstdint>
#include <string>

#include "strait/base/error.h"
#include "strait/experiment/handshake.h"
#include "strait/transport/handshake.h"

/// What another rank says of itself is accepted, or refused with an Error or WireError that names it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string kMine = strait::handshake_of(strait::Config(), 2, "");
  try {
    strait::check_handshakes(0, {kMine, std::string(reinterpret_cast<const char*>(data), size)});
  } catch (const strait::Error& error) {
    STRAIT_CHECK(std::string(error.what()).find("rank 1") != std::string::npos, "no rank: {}", error.what());
  }
  return 0;
}
