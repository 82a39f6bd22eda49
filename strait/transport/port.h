#pragma once

#include <cstdint>

namespace strait {

/// A port of the loopback interface at which nobody listens now. Where it can, it is none of those that the
/// kernel gives to sockets that name none, so that no such socket takes it before its user listens there.
/// Throws Error when there is none.
uint16_t free_port();

}  // namespace strait
