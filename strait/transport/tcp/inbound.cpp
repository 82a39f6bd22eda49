#include "strait/transport/tcp/inbound.h"

namespace strait::tcp {

std::span<std::byte> Inbound::space() {
  return (header_ ? payload_.bytes() : std::span<std::byte>(bytes_)).subspan(have_);
}

std::optional<std::pair<MessageHeader, Buffer>> Inbound::got(size_t bytes) {
  received_ += bytes;
  have_ += bytes;
  if (!header_) {
    if (have_ < kHeaderSize) return std::nullopt;
    header_ = read_header(bytes_);
    const bool has_payload = header_->type == MessageHeader::Type::data;
    payload_ = Buffer(has_payload ? header_->size : 0);
    payload_.resize(payload_.capacity());
    have_ = 0;
  }
  if (have_ < payload_.size()) return std::nullopt;
  have_ = 0;
  std::pair<MessageHeader, Buffer> message(*header_, std::move(payload_));
  header_.reset();
  payload_ = Buffer();
  return message;
}

}  // namespace strait::tcp
