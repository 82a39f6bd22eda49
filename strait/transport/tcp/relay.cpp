#include "strait/transport/tcp/relay.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

constexpr auto kOtherSideLimit = 10s;            // for the other rank to connect
constexpr size_t kPassedOn = size_t{256} << 10;  // bytes of a direction that are on their way through

/// One of two connections of which each says what the other hears.
struct SplicedEnd : Speaker {
  std::span<std::byte> space() override {
    if (!other->connection) return {};
    if (first == last) {
      first = last = 0;
    } else if (last == in.size() && first >= in.size() / 2) {
      std::memmove(in.data(), in.data() + first, last - first);
      last -= std::exchange(first, 0);
    }
    return std::span(in).subspan(last);
  }
  void got(size_t bytes) override {
    last += bytes;
    other->connection->pump();
  }
  std::span<const std::byte> bytes() override {
    return std::span(other->in).subspan(other->first, other->last - other->first);
  }
  void wrote(size_t bytes) override {
    other->first += bytes;
    other->connection->pump();  // there is space again
  }
  void closed(const std::string& /*reason*/) override {
    if (other->connection) other->connection->close();
  }

  SplicedEnd* other = nullptr;
  std::shared_ptr<Connection> connection;
  std::vector<std::byte> in =
      std::vector<std::byte>(kPassedOn);  ///< came here, of which [first, last) has to go
  size_t first = 0;
  size_t last = 0;
};

}  // namespace

class Relay::Splice {
 public:
  Splice() {
    ends_[0].other = &ends_[1];
    ends_[1].other = &ends_[0];
  }
  ~Splice() {
    for (const auto& end : ends_) {
      if (end.connection) end.connection->close();
    }
  }
  Splice(const Splice&) = delete;
  Splice& operator=(const Splice&) = delete;

  /// Takes one of the two connections, and begins with the second. Gives whether it has begun.
  bool take(std::shared_ptr<Connection> connection) {
    auto& end = ends_[0].connection ? ends_[1] : ends_[0];
    end.connection = std::move(connection);
    end.connection->set_speaker(end);
    if (!ends_[1].connection) return false;
    for (const auto& one : ends_) one.connection->pump();
    return true;
  }

  bool is_open() const {
    return std::ranges::all_of(ends_, [](const auto& end) { return end.connection->is_open(); });
  }

 private:
  std::array<SplicedEnd, 2> ends_;
};

bool Relay::bring(std::shared_ptr<Introduction> who, int from, int to, const std::string& reply) {
  waiting_.remove_if([&](const Waiting& one) { return one.from == from && one.to == to; });
  const auto other =
      std::ranges::find_if(waiting_, [&](const Waiting& one) { return one.from == to && one.to == from; });
  if (other == waiting_.end()) {
    const auto late = std::chrono::steady_clock::now() + kOtherSideLimit;
    waiting_.push_back({.who = std::move(who), .from = from, .to = to, .late = late});
    return false;
  }
  const auto splice = std::make_shared<Splice>();
  const auto first = std::move(other->who);
  waiting_.erase(other);
  for (const auto& side : {first, who}) {
    side->say(reply, [this, splice, side] {
      if (splice->take(side->release())) splices_.push_back(splice);
    });
  }
  return true;
}

void Relay::tick(std::chrono::steady_clock::time_point now) {
  waiting_.remove_if([&](const Waiting& one) { return one.late <= now; });
  splices_.remove_if([](const auto& splice) { return !splice->is_open(); });
}

}  // namespace strait::tcp
