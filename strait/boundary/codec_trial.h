#pragma once

#include <memory>

#include "strait/boundary/channel.h"

namespace strait {

/// A relative error of gradients that turns no more of the mean gradient than can be seen.
inline constexpr double kSmallError = 0.2;

/// What a message costs and loses through a link.
struct CodecTrial {
  double bytes = 0;           ///< of the frame
  double encode_seconds = 0;  ///< median of a few times, frame included
  double decode_seconds = 0;  ///< likewise
  double relative_error = 0;  ///< ErrorStatistics::relative_error(); 0 of integers, which arrive as they are
  double cosine = 1;          ///< of gradients, see LayerCosines; try_link() does not say it
};

/// Sends the message through new endpoints of the link, a few times. Throws InputError for a message that its
/// codec does not take, NumericError for one that it cannot send.
CodecTrial try_link(const KeptMessage& message, const std::shared_ptr<const Link>& link);

}  // namespace strait
