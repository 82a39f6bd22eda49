#pragma once

#include <string>

#include "strait/doctor/diagnosis.h"

namespace strait::test {

/// Three ranks in a row, each on a machine of its own, with links of 12.5 MB/s: nothing is wrong.
inline Diagnosis three_ranks() {
  Diagnosis found{.name = "invented"};
  for (int rank = 0; rank < 3; ++rank) {
    found.ranks.push_back({.rank = rank,
                           .host = "node" + std::to_string(rank),
                           .processor = "a processor",
                           .cores = 4,
                           .free_memory = uint64_t{8} << 30,
                           .folder = "runs/invented",
                           .free_disk = uint64_t{80} << 30,
                           .wire_version = 3,
                           .code_version = "1.0+abc",
                           .library_version = "2.13.0",
                           .send_buffer = uint64_t{4} << 20,
                           .receive_buffer = uint64_t{6} << 20,
                           .weight_bytes = 1000000,
                           .checkpoint_bytes = 2000000,
                           .settings = {{"seed", "0"}, {"train.epochs", "3"}}});
  }
  found.boundaries = {{"layer1", 0, 0, 1}, {"layer2", 0, 1, 2}};
  const LinkSpeed fast{.up = 12.5e6, .down = 12.5e6, .latency_seconds = 0.001};
  found.pairs = {{.ranks = {0, 1}, .route = Route::direct, .speed = fast},
                 {.ranks = {0, 2}, .route = Route::direct},
                 {.ranks = {1, 2}, .route = Route::direct, .speed = fast}};
  return found;
}

}  // namespace strait::test
