#pragma once

#include "strait/report/networks.h"

namespace strait::report {

/// The place in Epoch::step_seconds of the network with that rate and that latency.
constexpr size_t network_index(size_t rate, size_t latency) {
  return rate * kNetworkLatencies.size() + latency;
}

}  // namespace strait::report
