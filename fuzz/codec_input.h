#pragma once

#include <cstdint>

#include "strait/base/bytes.h"
#include "strait/codecs/message.h"

namespace strait::fuzz {

/// How an input of codec_fuzz begins; the payload follows. Chosen by id, so that a seed keeps its meaning
/// when codecs are added.
struct CodecInput {
  uint8_t codec = 0;   ///< id in codec_list.def; for an id that is none, a row of the list, modulo its length
  uint8_t sample = 0;  ///< of the codec's samples, modulo their number
  uint8_t dimensions[4] = {0, 0, 0, 0};  ///< each modulo kMaxDimension + 1, the last modulo kMaxWidth + 1
  uint8_t direction = 0;                 ///< modulo 2
  uint8_t seed = 0;

  static constexpr uint8_t kMaxDimension = 16;
  static constexpr uint8_t kMaxWidth = 64;

  MessageMeta meta() const {
    MessageMeta meta;
    for (const uint8_t size : dimensions) meta.shape.push_back(size % (kMaxDimension + 1));
    meta.shape.back() = dimensions[3] % (kMaxWidth + 1);
    return meta;
  }

  MessageContext context() const {
    MessageContext context;
    context.seed = seed;
    context.direction = static_cast<Direction>(direction % 2);
    return context;
  }
};
static_assert(sizeof(CodecInput) == 8);

}  // namespace strait::fuzz
