#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "strait/base/bytes.h"
#include "strait/transport/tcp/message.h"

namespace strait::tcp {

/// Parts the bytes of a session into messages, whatever connections bring them.
class Inbound {
 public:
  /// Where the next bytes go; never empty.
  std::span<std::byte> space();

  /// So many of them have come. Gives a message that is complete. Throws WireError for what is none.
  std::optional<std::pair<MessageHeader, Buffer>> got(size_t bytes);

  /// Bytes that have come since the beginning.
  uint64_t received() const { return received_; }

 private:
  std::array<std::byte, kHeaderSize> bytes_ = {};
  size_t have_ = 0;  ///< of the header, then of the payload
  std::optional<MessageHeader> header_;
  Buffer payload_;
  uint64_t received_ = 0;
};

}  // namespace strait::tcp
