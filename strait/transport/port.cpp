#include "strait/transport/port.h"

#include "strait/transport/socket.h"

namespace strait {

uint16_t free_port() { return port_of(listen_at("127.0.0.1", 0)); }

}  // namespace strait
