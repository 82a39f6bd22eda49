#pragma once

#include <cstdint>

namespace strait {

/// A port of the loopback interface at which nobody listens now. Throws Error when there is none.
uint16_t free_port();

}  // namespace strait
