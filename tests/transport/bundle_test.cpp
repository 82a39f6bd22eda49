// Several connections carry one stream of bytes: what a test at their other ends says and hears, piece by
// piece.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <mutex>

#include "strait/base/random.h"
#include "strait/transport/tcp/bundle.h"

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;

using Bytes = std::vector<std::byte>;

Bytes random_bytes(size_t size, uint64_t seed) {
  CounterRandom random(seed);
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random.below(256));
  return bytes;
}

/// Hears and says bytes, and remembers them.
class Talker : public Speaker {
 public:
  explicit Talker(Bytes says = {}) : says_(std::move(says)) {}

  std::span<std::byte> space() override { return space_; }
  void got(size_t bytes) override {
    const std::scoped_lock lock(mutex_);
    heard_.insert(heard_.end(), space_.begin(), space_.begin() + static_cast<ptrdiff_t>(bytes));
    changed_.notify_all();
  }
  std::span<const std::byte> bytes() override { return std::span(says_).subspan(said_); }
  void wrote(size_t bytes) override { said_ += bytes; }
  void closed(const std::string& reason) override {
    const std::scoped_lock lock(mutex_);
    closed_ = reason;
    changed_.notify_all();
  }

  /// What was heard, once it is so much or the line is closed; empty reasons: it is open.
  std::pair<Bytes, std::string> heard(size_t bytes) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return heard_.size() >= bytes || !closed_.empty(); });
    return {heard_, closed_};
  }
  std::string closed_reason() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, 20s, [&] { return !closed_.empty(); });
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Bytes says_;
  size_t said_ = 0;
  Bytes space_ = Bytes(777);
  Bytes heard_;
  std::string closed_;
};

/// A bundle, and the other ends of its connections.
class SeveralConnections : public testing::Test {
 protected:
  ~SeveralConnections() override {
    on_loop([&] { bundle_.reset(); });
  }

  void open(int connections, Bytes says = {}) {
    talker_ = std::make_unique<Talker>(std::move(says));
    std::vector<std::shared_ptr<Connection>> near;
    for (int i = 0; i < connections; ++i) {
      int ends[2];
      ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
      near.push_back(std::make_shared<Connection>(loop_, make_plain_stream(Socket(ends[0]))));
      far_.emplace_back(ends[1]);
    }
    on_loop([&] {
      bundle_ = std::make_shared<Bundle>(loop_, 1);
      bundle_->add(near.front());
      bundle_->set_speaker(*talker_);
      for (size_t i = 1; i < near.size(); ++i) bundle_->add(near[i]);
      bundle_->pump();
    });
  }

  void on_loop(const EventLoop::Work& work) {
    std::promise<void> done;
    loop_.post([&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// A piece as the other side would send it.
  static Bytes piece(uint64_t place, std::span<const std::byte> bytes) {
    Bytes piece(12 + bytes.size());
    const auto size = static_cast<uint32_t>(bytes.size());
    std::memcpy(piece.data(), &place, 8);
    std::memcpy(piece.data() + 8, &size, 4);
    std::ranges::copy(bytes, piece.begin() + 12);
    return piece;
  }

  bool send_to(size_t connection, const Bytes& bytes) {
    return send_all(far_[connection], {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                    std::chrono::steady_clock::now() + 20s);
  }

  void say(size_t connection, const Bytes& bytes) { ASSERT_TRUE(send_to(connection, bytes)); }

  EventLoop loop_{[](const std::string& reason) { ADD_FAILURE() << reason; }};
  std::unique_ptr<Talker> talker_;
  std::shared_ptr<Bundle> bundle_;
  std::vector<Socket> far_;
};

TEST_F(SeveralConnections, BringPiecesInOrderHoweverTheyCome) {
  const Bytes all = random_bytes(3'000'000, 1);
  CounterRandom random(2);
  open(4);
  std::vector<std::deque<Bytes>> queues(4);
  for (size_t place = 0; place < all.size();) {
    const auto most = random.below(10) == 0 ? uint64_t{60'000} : uint64_t{4'000};
    const size_t size = std::min<size_t>(all.size() - place, 1 + random.below(most));
    queues[random.below(4)].push_back(piece(place, std::span(all).subspan(place, size)));
    place += size;
  }
  // Each connection's in order, the connections in turns of any length, and in parts that end anywhere.
  std::vector<Bytes> rests(4);
  while (true) {
    std::vector<size_t> left;
    for (size_t i = 0; i < 4; ++i) {
      if (!queues[i].empty() || !rests[i].empty()) left.push_back(i);
    }
    if (left.empty()) break;
    const size_t i = left[random.below(left.size())];
    for (uint64_t turn = random.below(30); turn > 0 && !queues[i].empty(); --turn) {
      rests[i].insert(rests[i].end(), queues[i].front().begin(), queues[i].front().end());
      queues[i].pop_front();
    }
    const bool keeps = !queues[i].empty() && !rests[i].empty();
    const auto part = static_cast<ptrdiff_t>(keeps ? random.below(rests[i].size()) : rests[i].size());
    say(i, Bytes(rests[i].begin(), rests[i].begin() + part));
    rests[i].erase(rests[i].begin(), rests[i].begin() + part);
  }
  EXPECT_EQ(talker_->heard(all.size()), std::pair(all, std::string()));
}

TEST_F(SeveralConnections, WaitForTheOneThatIsBehindHoweverMuchTheOthersBring) {
  const Bytes all = random_bytes(100'000'000, 3);
  open(2);
  constexpr size_t kSize = 60'000;
  std::thread ahead([&] {
    for (size_t place = kSize; place < all.size(); place += kSize) {
      say(1, piece(place, std::span(all).subspan(place, std::min(kSize, all.size() - place))));
    }
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_TRUE(talker_->heard(0).first.empty());
  say(0, piece(0, std::span(all).first(kSize)));
  const auto heard = talker_->heard(all.size());
  ahead.join();
  EXPECT_TRUE(heard.first == all);
  EXPECT_EQ(heard.second, "");
}

TEST_F(SeveralConnections, ShareWhatIsSaidAndLeaveNothingOut) {
  const Bytes all = random_bytes(8'000'000, 4);
  open(3, all);
  std::map<uint64_t, Bytes> pieces;
  std::vector<Bytes> streams(3);
  std::vector<int> pieces_of(3);
  size_t have = 0;
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (have < all.size() && std::chrono::steady_clock::now() < end) {
    for (size_t i = 0; i < 3; ++i) {
      std::array<std::byte, 30'000> space;
      const ssize_t got = recv(far_[i].descriptor(), space.data(), space.size(), 0);
      if (got <= 0) continue;
      auto& stream = streams[i];
      stream.insert(stream.end(), space.begin(), space.begin() + got);
      while (stream.size() >= 12) {
        uint64_t place = 0;
        uint32_t size = 0;
        std::memcpy(&place, stream.data(), 8);
        std::memcpy(&size, stream.data() + 8, 4);
        if (stream.size() < 12 + size) break;
        const auto first = stream.begin() + 12;
        EXPECT_TRUE(pieces.emplace(place, Bytes(first, first + size)).second) << "twice: " << place;
        stream.erase(stream.begin(), first + size);
        have += size;
        ++pieces_of[i];
      }
    }
  }
  Bytes together;
  for (const auto& [place, bytes] : pieces) {
    ASSERT_EQ(place, together.size());
    together.insert(together.end(), bytes.begin(), bytes.end());
  }
  EXPECT_TRUE(together == all);
  EXPECT_GT(*std::ranges::min_element(pieces_of), 1) << "a connection carried hardly anything";
}

TEST_F(SeveralConnections, EndTogetherWhenOneBreaksOff) {
  open(3);
  far_[1] = Socket();
  EXPECT_EQ(talker_->closed_reason(), kConnectionClosed);
  std::byte byte{};
  for (const size_t other : {size_t{0}, size_t{2}}) {
    pollfd wait{far_[other].descriptor(), POLLIN, 0};
    EXPECT_EQ(poll(&wait, 1, 20'000), 1);
    EXPECT_EQ(recv(far_[other].descriptor(), &byte, 1, 0), 0) << other;
  }
}

TEST_F(SeveralConnections, TakeNoOtherOnceTheyHaveEnded) {
  open(2);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
  const Socket far(ends[1]);
  bool open = true;
  on_loop([&] {
    bundle_->close();
    const auto late = std::make_shared<Connection>(loop_, make_plain_stream(Socket(ends[0])));
    bundle_->add(late);
    open = late->is_open();
    bundle_.reset();
  });
  EXPECT_FALSE(open);
}

TEST_F(SeveralConnections, EndWhenAPieceCannotBe) {
  const Bytes some(100);
  const std::vector<std::pair<std::string, std::vector<Bytes>>> cases = {
      {"nothing", {piece(0, {})}},
      {"too much", {piece(0, Bytes(100'000))}},
      {"again", {piece(0, some), piece(0, some)}},
      {"a part again", {piece(0, some), piece(50, some)}},
      {"twice before its turn", {piece(200, some), piece(200, some)}},
      {"over another", {piece(50, some), piece(0, some)}},
  };
  for (const auto& [name, pieces] : cases) {
    far_.clear();
    open(2);
    for (const auto& piece : pieces) send_to(0, piece);  // it may be closed by then
    EXPECT_NE(talker_->closed_reason(), "") << name;
    on_loop([&] { bundle_.reset(); });
  }
}

}  // namespace
}  // namespace strait::tcp
