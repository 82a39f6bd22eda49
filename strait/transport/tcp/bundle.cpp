#include "strait/transport/tcp/bundle.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "strait/base/bytes.h"

namespace strait::tcp {
namespace {

constexpr size_t kPieceHead = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kPiece =
    (size_t{64} << 10) - kPieceHead;            // most bytes of one: with its head four records of TLS
constexpr size_t kMostHeld = size_t{64} << 20;  // bytes that may wait for others
constexpr int kUnsent =
    256 << 10;  // bytes with which a socket takes no more, so that another gets the next piece

}  // namespace

/// One of the connections.
class Bundle::Strand : public Speaker {
 public:
  Strand(Bundle& bundle, std::shared_ptr<Connection> connection)
      : bundle_(bundle), connection_(std::move(connection)) {
    connection_->set_speaker(*this);
  }

  Connection& connection() { return *connection_; }

  std::span<std::byte> space() override {
    if (way_ == Way::head) return std::span(head_).subspan(have_);
    if (way_ == Way::undecided) choose_way();
    if (way_ == Way::undecided) return {};
    if (way_ == Way::held) return std::span(piece_).subspan(have_);
    const auto space = bundle_.speaker_->space();
    return space.first(std::min(space.size(), size_ - have_));
  }

  void got(size_t bytes) override {
    const auto bundle = bundle_.shared_from_this();  // the speaker may let go of it
    have_ += bytes;
    if (way_ == Way::head) {
      if (have_ == kPieceHead) read_head();
      return;
    }
    if (way_ == Way::straight) {
      bundle_.in_ += bytes;
      bundle_.speaker_->got(bytes);
    }
    if (have_ < size_ || !bundle_.open_) return;
    if (way_ == Way::held && !bundle_.held_.try_emplace(place_, std::move(piece_)).second) {
      return bundle_.fail("pieces overlap");
    }
    way_ = Way::head;
    have_ = 0;
    bundle_.deliver_held();
  }

  std::span<const std::byte> bytes() override {
    if (sent_ == out_.size()) {
      bundle_.cut_piece(out_);
      sent_ = 0;
    }
    return std::span(out_).subspan(sent_);
  }

  void wrote(size_t bytes) override { sent_ += bytes; }

  void closed(const std::string& reason) override { bundle_.fail(reason); }

 private:
  /// Where the bytes of the piece go that comes.
  enum class Way {
    head,       ///< its head is coming
    undecided,  ///< they have to wait
    straight,   ///< to the speaker
    held,       ///< aside: others come before
  };

  void read_head() {
    ByteReader in(head_);
    place_ = in.get<uint64_t>();
    size_ = in.get<uint32_t>();
    have_ = 0;
    way_ = Way::undecided;
    if (place_ < bundle_.in_ || size_ == 0 || size_ > kPiece) {
      bundle_.fail("a piece that cannot be");
    }
  }

  void choose_way() {
    if (place_ == bundle_.in_) {
      way_ = Way::straight;
    } else if (bundle_.held_bytes_ + size_ <= kMostHeld) {
      way_ = Way::held;
      piece_.resize(size_);
      bundle_.held_bytes_ += size_;
    }
  }

  Bundle& bundle_;
  std::shared_ptr<Connection> connection_;

  Way way_ = Way::head;
  std::array<std::byte, kPieceHead> head_ = {};
  uint64_t place_ = 0;
  size_t size_ = 0;
  size_t have_ = 0;  ///< bytes of the head, then of the piece
  std::vector<std::byte> piece_;

  std::vector<std::byte> out_;  ///< a piece with its head
  size_t sent_ = 0;             ///< bytes of it
};

Bundle::Bundle(EventLoop& loop, uint64_t id) : loop_(loop), id_(id) {}

Bundle::~Bundle() { close(); }

int Bundle::size() const { return static_cast<int>(strands_.size()); }

void Bundle::add(std::shared_ptr<Connection> connection) {
  if (!open_) return connection->close();
  setsockopt(connection->socket().descriptor(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof(kUnsent));
  strands_.push_back(std::make_unique<Strand>(*this, std::move(connection)));
  if (speaker_ != nullptr) strands_.back()->connection().pump();
}

void Bundle::pump() {
  const auto self = shared_from_this();  // the speaker may let go of it
  // By number: a connection that pumps may end all, but adds none.
  for (size_t i = 0; i < strands_.size() && open_; ++i) strands_[i]->connection().pump();
}

void Bundle::close() {
  if (!std::exchange(open_, false)) return;
  for (const auto& strand : strands_) strand->connection().close();
}

/// Takes what is to be sent next; leaves `piece` empty where there is nothing.
void Bundle::cut_piece(std::vector<std::byte>& piece) {
  piece.clear();
  auto bytes = speaker_->bytes();
  if (bytes.empty()) return;
  bytes = bytes.first(std::min(bytes.size(), kPiece));
  piece.resize(kPieceHead + bytes.size());
  ByteWriter out(piece);
  out.put(out_);
  out.put(static_cast<uint32_t>(bytes.size()));
  std::memcpy(out.claim(bytes.size()).data(), bytes.data(), bytes.size());
  out_ += bytes.size();
  speaker_->wrote(bytes.size());
}

void Bundle::deliver(std::span<const std::byte> bytes) {
  while (!bytes.empty() && open_) {
    const auto space = speaker_->space();
    const size_t size = std::min(space.size(), bytes.size());
    std::memcpy(space.data(), bytes.data(), size);
    bytes = bytes.subspan(size);
    in_ += size;
    speaker_->got(size);
  }
}

/// Gives the speaker the pieces whose turn it is, and what it has to say to a connection that can take it.
void Bundle::deliver_held() {
  while (open_ && !held_.empty() && held_.begin()->first <= in_) {
    const auto piece = held_.extract(held_.begin());
    if (piece.key() < in_) return fail("pieces overlap");
    held_bytes_ -= piece.mapped().size();
    deliver(piece.mapped());
  }
  wake();
}

/// Has all connections look, a little later, at what there is to write or can be read again.
void Bundle::wake() {
  if (!open_ || size() < 2 || std::exchange(woken_, true)) return;
  loop_.post([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self) return;
    self->woken_ = false;
    self->pump();
  });
}

void Bundle::fail(const std::string& reason) {
  if (!open_) return;
  close();
  speaker_->closed(reason);
}

}  // namespace strait::tcp
