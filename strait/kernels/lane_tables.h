#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace strait::kernels {

/// How eight lanes move for each mask of them, for targets that have no instruction for it. One byte per lane.
struct LaneTables {
  /// One entry per lane.
  using Lanes = std::array<uint8_t, 8>;

  /// Computes the tables.
  constexpr LaneTables() {
    for (size_t mask = 0; mask < 256; ++mask) {
      uint8_t rank = 0;
      for (uint8_t lane = 0; lane < 8; ++lane) {
        rank_of[mask][lane] = rank;
        if ((mask >> lane & 1) != 0) masked[mask][rank++] = lane;
      }
    }
  }

  std::array<Lanes, 256> masked{};   ///< the masked lanes, rising, then zeros
  std::array<Lanes, 256> rank_of{};  ///< how many masked lanes stand before each
};

/// The tables, made when compiling.
inline constexpr LaneTables kLaneTables;

}  // namespace strait::kernels
