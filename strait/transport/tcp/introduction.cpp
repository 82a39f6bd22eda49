#include "strait/transport/tcp/introduction.h"

#include <cstring>
#include <string_view>
#include <utility>

namespace strait::tcp {
namespace {

constexpr std::string_view kMagic = "strait-2";
constexpr size_t kHead = kMagic.size() + sizeof(uint32_t);

}  // namespace

Introduction::Introduction(std::shared_ptr<Connection> connection, Events events)
    : connection_(std::move(connection)), events_(std::move(events)), in_(kHead) {
  connection_->set_speaker(*this);
}

Introduction::~Introduction() {
  if (connection_) connection_->close();
}

void Introduction::say(const std::string& text, std::function<void()> then) {
  out_ = kMagic;
  const auto size = static_cast<uint32_t>(text.size());
  out_.append(reinterpret_cast<const char*>(&size), sizeof(size));
  out_ += text;
  then_ = std::move(then);
  connection_->pump();
}

std::span<std::byte> Introduction::space() {
  if (heard_) return {};
  return std::span(in_).subspan(have_);
}

void Introduction::got(size_t bytes) {
  have_ += bytes;
  if (have_ < in_.size()) return;
  if (in_.size() == kHead) {
    uint32_t size = 0;
    std::memcpy(&size, in_.data() + kMagic.size(), sizeof(size));
    if (std::memcmp(in_.data(), kMagic.data(), kMagic.size()) != 0 || size == 0 || size > kMaxText) {
      connection_->close();
      return closed("it speaks another language");
    }
    in_.resize(kHead + size);
    return;
  }
  heard_ = true;
  // It may end this object, and its function with it.
  const auto heard = events_.heard;
  heard({reinterpret_cast<const char*>(in_.data()) + kHead, in_.size() - kHead});
}

std::span<const std::byte> Introduction::bytes() { return std::as_bytes(std::span(out_)); }

void Introduction::wrote(size_t bytes) {
  out_.erase(0, bytes);
  if (!out_.empty() || !then_) return;
  const auto then = std::exchange(then_, {});
  then();
}

void Introduction::closed(const std::string& reason) {
  const auto then = std::exchange(then_, {});  // may hold this object
  if (heard_) return;
  const auto failed = events_.failed;
  failed(reason, proved_);
}

}  // namespace strait::tcp
