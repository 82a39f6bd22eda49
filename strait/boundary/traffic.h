#pragma once

#include <array>
#include <cstdint>
#include <optional>

// What boundaries measure, as numbers alone: without torch, for those who write and read it.

namespace strait {

/// What crossed one direction of one boundary in training.
struct Traffic {
  uint64_t messages = 0;      ///< of training
  uint64_t raw_bytes = 0;     ///< float32 bytes of the tensors; of integers those of their payload
  uint64_t wire_bytes = 0;    ///< everything that crosses: header, scales, indices, values
  double encode_seconds = 0;  ///< of the sender
  double decode_seconds = 0;  ///< of the receiver

  /// Adds all numbers.
  Traffic& operator+=(const Traffic& other) {
    messages += other.messages;
    raw_bytes += other.raw_bytes;
    wire_bytes += other.wire_bytes;
    encode_seconds += other.encode_seconds;
    decode_seconds += other.decode_seconds;
    return *this;
  }

  /// Uncompressed over compressed; 1 when nothing was sent.
  double ratio() const {
    return wire_bytes == 0 ? 1.0 : static_cast<double>(raw_bytes) / static_cast<double>(wire_bytes);
  }
};

/// What the measured messages of one direction of one boundary looked like, taken together.
struct Diagnostics {
  /// The shares of elements whose magnitudes `quantiles` bounds.
  static constexpr std::array<double, 4> kShares = {0.5, 0.9, 0.99, 1.0};

  uint64_t messages = 0;              ///< that were measured
  double zeros = 0;                   ///< share of elements that are 0
  std::array<double, 4> quantiles{};  ///< of the magnitude, at kShares; within 3%, the last exact
  double relative_error = 0;          ///< |x - what the receiver sees| / |x|, 2-norms

  // Of the error, what is not noise: a sent message that is scaled, and one that is shifted.

  /// <x, what the receiver sees> / |x|^2: 1 where nothing is lost, less where magnitudes shrink.
  double gain = 1;

  /// |sum of a message's errors| / sqrt(its elements) / |x|: the relative error that would be left, were every
  /// element of a message off by the mean error.
  double mean_error = 0;

  /// Between consecutive messages of a slot: mean over the rows of the cosine of the angle between a row and
  /// the row of the message before that stood at the same place of its batch. Nothing where there was none.
  std::optional<double> cosine;

  /// |what the state holds back| / |x|, 2-norms; nothing for a link that holds nothing back.
  std::optional<double> residual_norm;
};

}  // namespace strait
