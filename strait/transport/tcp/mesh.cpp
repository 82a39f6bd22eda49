#include "strait/transport/tcp/mesh.h"

#include <atomic>
#include <future>

#include "strait/base/error.h"
#include "strait/base/token.h"
#include "strait/transport/join_group.h"
#include "strait/transport/tcp/secret.h"
#include "strait/transport/tcp/words.h"

namespace strait::tcp {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kTick(50);
constexpr auto kBetweenDials = 100ms;
constexpr int kRefusals = 3;       // after which nobody listens there any more
constexpr auto kReturn = 1s;       // after which one whose connection broke off is looked for
constexpr auto kLongReturn = 10s;  // after which it is given up where it cannot be looked for
constexpr milliseconds kNoLimit = std::chrono::hours(24 * 365);
constexpr milliseconds kLastWord(1000);  // for the others to hear why this rank ends

}  // namespace

/// Another rank, as this one knows it. But for the session's way out, all is of the loop's thread.
struct Mesh::Peer {
  Peer(int rank, Mailroom& mailroom, Session::Events events) : session(rank, mailroom, std::move(events)) {}

  Session session;
  Endpoint endpoint = {};
  std::string token = {};
  std::shared_ptr<Dial> dial = {};
  Time next_dial = {};
  int refusals = 0;
  bool asks = false;                    ///< rank 0 to bring the two together
  bool straight = true;                 ///< the higher rank could connect by itself, when they last connected
  bool relayed = false;                 ///< the last connection goes through rank 0
  bool called = false;                  ///< this rank is to connect to it once
  std::string seen_at = {};             ///< the host from which it last connected
  std::weak_ptr<Bundle> bundle = {};    ///< that carries the session, where it has several connections
  int missing_connections = 0;          ///< of the bundle, which this rank is to add
  std::shared_ptr<Dial> widening = {};  ///< for one of them
  Time next_widening = {};
  uint64_t bundles = 0;  ///< that this rank has named
  bool wanted = false;
  std::atomic<bool> is_asked = false;  ///< to be wanted; of any thread
};

Mesh::Mesh(Meeting meeting, int rank, int ranks, std::string attempt, milliseconds timeout)
    : mailroom_(rank, ranks, timeout),
      meeting_(std::move(meeting)),
      attempt_(std::move(attempt)),
      token_(random_token()) {
  for (int peer = 0; peer < ranks; ++peer) {
    peers_.push_back(std::make_unique<Peer>(
        peer, mailroom_,
        Session::Events{.heard = [this, peer](Kind kind, const Buffer& message) { hear(peer, kind, message); },
                        .broken = [this, peer](const std::string& reason) { set_broken(peer, reason); }}));
    if (peer != 0 || rank != 0) attendance_.missing.push_back(peer);
  }
  std::erase(attendance_.missing, rank);
  loop_ = std::make_unique<EventLoop>([this](const std::string& reason) { mailroom_.end(reason); });
  own_ = meeting_.tls ? Endpoint{} : meeting_.at_path(rank);
  if (rank == 0) own_ = meeting_.first;
  if (own_.is_local()) place_ = std::make_unique<RankPlace>(meeting_.folder, rank);
  auto socket = std::make_shared<Socket>(listen_at(own_));
  if (meeting_.tls) own_.port = port_of(*socket);
  at(0).endpoint = meeting_.first;
  at(0).wanted = true;
  loop_->post([this, socket] {
    listener_ =
        std::make_unique<Listener>(*loop_, std::move(*socket), meeting_.tls.get(),
                                   [this](const auto& who, const std::string& hello) { greeted(who, hello); });
    tick();
    loop_->every(kTick, [this] { tick(); });
  });
}

Mesh::~Mesh() {
  on_loop([&] { leaves_ = true; });
  const auto begin = steady_clock::now();
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    mailroom_.note_sent(peer);
    at(peer).session.out().leave();
    flush(peer);
  }
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    // Whose link is down is to have what was sent once it is up again.
    bool was_there = false;
    on_loop([&] { was_there = at(peer).session.was_connected(); });
    if (!was_there) continue;
    const milliseconds patience = part_to_wait(mailroom_.timeout());
    mailroom_.wait_until_confirmed(
        peer, mailroom_.failure() ? last_word_from(begin) : Mailroom::Farewell{begin, patience, kNoLimit});
  }
  on_loop([&] {
    closed_ = true;
    listener_.reset();
    relay_ = {};
    for (const auto& peer : peers_) {
      peer->dial.reset();
      peer->widening.reset();
      peer->session.lose("left");
    }
  });
  loop_.reset();
}

void Mesh::send(int to, const Channel& channel, Buffer message, const std::string& where, int named) {
  check_size(channel, message.size(), where);
  want(to);
  if (channel.is_urgent()) {
    mailroom_.check(where, to, named);
  } else {
    mailroom_.wait_for_room(to, channel.lane(), where, named);
  }
  mailroom_.note_sent(to);
  if (at(to).session.out().send(channel, std::move(message))) flush(to);
}

void Mesh::expect(int from, const Channel& channel) {
  want(from);
  if (mailroom_.expect(from, channel) && at(from).session.out().give_room(channel.lane())) flush(from);
}

Buffer Mesh::receive(int from, const Channel& channel, const std::string& where, int named) {
  want(from);
  auto received = mailroom_.receive(from, channel, where, named);
  if (received.gives_room && at(from).session.out().give_room(channel.lane())) flush(from);
  return std::move(received.message);
}

void Mesh::fail(const Failure& failure) {
  const bool first = mailroom_.set_failure(failure);
  mailroom_.end(kGivenUp);
  if (!first) return;
  on_loop([&] { spread(failure, rank()); });
  const auto begin = steady_clock::now();
  for (int peer = 0; peer < ranks(); ++peer) mailroom_.wait_until_confirmed(peer, last_word_from(begin));
}

/// A word of failure may stand behind a long message on a slow link.
Mailroom::Farewell Mesh::last_word_from(Time begin) const {
  const milliseconds timeout = mailroom_.timeout();
  return {.begin = begin, .patience = std::min(kLastWord, timeout / 10), .most = part_to_wait(timeout) / 2};
}

/// Has the work done in the loop's thread, and waits for its end, also where it throws, of which the loop
/// tells.
void Mesh::on_loop(const EventLoop::Work& work) {
  std::promise<void> done;
  struct End {
    std::promise<void>& done;
    ~End() { done.set_value(); }
  };
  loop_->post([&] {
    const End end{done};
    work();
  });
  done.get_future().wait();
}

void Mesh::flush(int peer) {
  loop_->post([this, peer] { at(peer).session.flush(); });
}

void Mesh::send_urgent(int to, Kind kind, Buffer message) {
  mailroom_.note_sent(to);
  if (at(to).session.out().send({.kind = kind}, std::move(message))) flush(to);
}

/// Tells those whom this rank speaks with.
void Mesh::spread(const Failure& failure, int except) {
  const std::string text = text_of(failure);
  for (int peer = 0; peer < ranks(); ++peer) {
    const bool hears = peer != except && peer != failure.rank && at(peer).session.is_connected();
    if (hears) send_urgent(peer, Kind::failure, buffer_of(text));
  }
}

void Mesh::want(int peer) {
  if (at(peer).is_asked.exchange(true)) return;
  loop_->post([this, peer] {
    at(peer).wanted = true;
    look_after(peer, steady_clock::now());
  });
}

void Mesh::tell_news() {
  news_ = true;
  mailroom_.wake();
}

Mesh::Attendance Mesh::attendance() {
  const std::scoped_lock lock(mutex_);
  news_ = false;
  return attendance_;
}

uint16_t Mesh::port() const {
  const std::scoped_lock lock(mutex_);
  return own_.port;
}

std::string Mesh::card() const {
  const std::scoped_lock lock(mutex_);
  return text_of(json{{"endpoint", own_.text()}, {"token", token_}});
}

void Mesh::take_cards(const std::vector<std::string>& cards) {
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer == rank()) continue;
    try {
      const json card = parse(cards[static_cast<size_t>(peer)]);
      const auto endpoint = Endpoint::parse(card.at("endpoint").get<std::string>());
      loop_->post([this, peer, endpoint, token = card.at("token").get<std::string>()] {
        if (peer > 0) at(peer).endpoint = endpoint;
        at(peer).token = token;
      });
    } catch (const json::exception&) {
      throw WireError("rank {}: rank {} speaks another language", rank(), peer);
    }
  }
}

std::vector<LinkStatus> Mesh::links() {
  std::vector<LinkStatus> links;
  on_loop([&] {
    for (int peer = 0; peer < ranks(); ++peer) {
      const Peer& other = at(peer);
      if (!other.session.was_connected()) continue;
      const Route route = !meeting_.tls ? Route::local : other.relayed ? Route::relayed : Route::direct;
      const auto bundle = other.bundle.lock();
      links.push_back({.peer = peer,
                       .route = route,
                       .outages = other.session.outages(),
                       .address = other.endpoint.text(),
                       .connections = bundle ? bundle->size() : 1});
    }
  });
  return links;
}

void Mesh::tick() {
  if (closed_) return;
  const auto now = steady_clock::now();
  listener_->tick(now);
  relay_.tick(now);
  {
    const std::scoped_lock lock(mutex_);
    attendance_.last_refused = listener_->last_refused();
  }
  for (int peer = 0; peer < ranks(); ++peer) {
    if (peer != rank()) look_after(peer, now);
  }
}

bool Mesh::has_failed_or_left(int peer) const { return mailroom_.has_left(peer) || mailroom_.failure(); }

void Mesh::look_after(int peer, Time now) {
  Peer& other = at(peer);
  other.session.tick(now);
  if (const auto dial = other.dial) return dial->tick(now);
  if (closed_ || has_failed_or_left(peer)) return;
  if (other.session.is_connected()) return widen(peer, now);
  const bool dials = peer < rank();
  bool seeks = false;  // whether anybody is still there
  if (other.session.was_connected()) {
    const auto lost = now - other.session.lost_at();
    const bool broke_off = !dials && other.straight && other.session.lost_reason() == kConnectionClosed;
    // Behind a router it is at another address than it knows, and who answers at that one is somebody else.
    const bool is_found = other.endpoint.is_local() || other.endpoint.host == other.seen_at;
    const bool is_given_up = broke_off && !is_found && lost > kLongReturn;
    if (lost > part_to_wait(mailroom_.timeout()) || is_given_up) return set_gone(peer);
    seeks = !dials && is_found && (other.endpoint.is_local() || (broke_off && lost > kReturn));
  }
  const bool may = dials ? other.wanted : seeks;
  if (may && now >= other.next_dial && other.endpoint.is_known()) dial(peer);
}

void Mesh::dial(int peer) {
  Peer& other = at(peer);
  other.next_dial = steady_clock::now() + kBetweenDials;
  const bool introduces = peer < rank() || other.called;  // else it is enough that somebody is there
  dial(peer, other.asks ? meeting_.first : other.endpoint, introduces ? hello_to(peer).text() : "");
}

void Mesh::dial(int peer, const Endpoint& endpoint, const std::string& hello) {
  at(peer).dial = new_dial(peer, endpoint, hello);
  const auto dial = at(peer).dial;  // it may fail at once
  dial->start();
}

std::shared_ptr<Dial> Mesh::new_dial(int peer, const Endpoint& endpoint, const std::string& hello) {
  return std::make_shared<Dial>(
      *loop_, meeting_.tls.get(), endpoint, hello,
      Dial::Events{.answered = [this, peer](const auto& connection,
                                            const std::string& reply) { answered(peer, connection, reply); },
                   .failed = [this, peer](Obstacle obstacle) { not_reached(peer, obstacle); }});
}

/// Rank 0 says that the peer cannot reach this rank.
void Mesh::called(int peer) {
  Peer& other = at(peer);
  if (closed_ || has_failed_or_left(peer) || !other.endpoint.is_known()) return;
  other.session.lose("called");  // what the hello says of it must stay true
  other.called = true;
  other.asks = other.relayed;
  dial(peer);
}

/// Rank 0's relay has the peer at the other side of a connection.
void Mesh::brought_together(int peer, const std::shared_ptr<Connection>& connection) {
  if (peer > rank()) return listener_->take(connection, meeting_.first.host);
  at(peer).dial = new_dial(peer, {}, hello_to(peer).text());
  const auto dial = at(peer).dial;
  dial->start_over(connection);
}

/// Brings somebody together with a rank that it cannot reach.
void Mesh::relay(std::shared_ptr<Introduction> who, int from, int to) {
  if (relay_.bring(std::move(who), from, to, kBroughtTogether) || from < to) return;
  if (at(to).session.is_connected()) send_urgent(to, Kind::call, buffer_of(text_of(json{{"rank", from}})));
}

Hello Mesh::hello_to(int peer) {
  return {.attempt = digest(attempt_),
          .rank = rank(),
          .ranks = ranks(),
          .to = peer,
          .token = token_,
          .relayed = at(peer).asks,
          .connections = meeting_.connections,
          .received = at(peer).session.received(),
          .joins = std::nullopt};
}

void Mesh::answered(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply) {
  Peer& other = at(peer);
  other.dial.reset();
  other.refusals = 0;
  other.called = false;
  if (reply == kBroughtTogether) return brought_together(peer, connection);
  // Without a reply it is enough that somebody is there.
  if (reply.empty() || !go_on(peer, connection, reply)) return connection->close();
  if (peer > 0) return;
  const std::scoped_lock lock(mutex_);
  std::erase(attendance_.missing, 0);
  tell_news();
}

/// Whether the session goes on over the connection, as the other side's reply says.
bool Mesh::go_on(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply) {
  Peer& other = at(peer);
  try {
    const Welcome said = Welcome::parse(reply);
    if (said.refused) {
      refused(peer, *said.refused);
      return false;
    }
    if (!other.token.empty() && other.token != said.token) {
      if (other.session.was_connected()) {
        set_gone(peer);
      } else {
        not_reached(peer, Obstacle::stranger);
      }
      return false;
    }
    other.token = said.token;
    if (peer == 0 && meeting_.tls) {
      const std::scoped_lock lock(mutex_);
      own_.host = own_address(connection->socket()).host();
    }
    other.relayed = other.asks;
    other.straight = !other.asks && peer < rank();
    const auto line = line_over(peer, connection, said.connections, said.bundle);
    if (!other.bundle.expired()) {
      other.missing_connections = std::min(meeting_.connections, said.connections) - 1;
    }
    return other.session.attach(line, said.received);
  } catch (const std::exception&) {
    not_reached(peer, Obstacle::stranger);
    return false;
  }
}

/// What carries the session over a first connection: a bundle of this id where both sides want several.
std::shared_ptr<Line> Mesh::line_over(int peer, const std::shared_ptr<Connection>& connection, int connections,
                                      uint64_t id) {
  Peer& other = at(peer);
  other.bundle.reset();
  other.widening.reset();
  other.missing_connections = 0;
  if (!meeting_.tls || other.relayed || std::min(connections, meeting_.connections) < 2) return connection;
  auto bundle = std::make_shared<Bundle>(*loop_, id);
  bundle->add(connection);
  other.bundle = bundle;
  return bundle;
}

/// Adds the connections that a session over several has not yet, one after another.
void Mesh::widen(int peer, Time now) {
  Peer& other = at(peer);
  if (const auto dial = other.widening) return dial->tick(now);
  const auto bundle = other.bundle.lock();
  if (!bundle || other.missing_connections == 0 || now < other.next_widening) return;
  other.next_widening = now + kBetweenDials;
  Hello hello = hello_to(peer);
  hello.joins = bundle->id();
  other.widening = std::make_shared<Dial>(
      *loop_, meeting_.tls.get(), other.endpoint, hello.text(),
      Dial::Events{.answered = [this, peer](const auto& connection,
                                            const std::string& reply) { widened(peer, connection, reply); },
                   .failed = [this, peer](Obstacle) { at(peer).widening.reset(); }});
  const auto dial = other.widening;  // it may fail at once
  dial->start();
}

/// One more connection is there, or is not wanted.
void Mesh::widened(int peer, const std::shared_ptr<Connection>& connection, const std::string& reply) {
  Peer& other = at(peer);
  other.widening.reset();
  const auto bundle = other.bundle.lock();
  const bool joined = reply == joined_text(other.token);
  if (!bundle || !joined || !bundle->is_open()) return connection->close();
  --other.missing_connections;
  bundle->add(connection);
  other.next_widening = {};
  widen(peer, steady_clock::now());
}

/// The other side does not take this process for the rank.
void Mesh::refused(int peer, const std::string& why) {
  if (at(peer).session.was_connected()) return set_gone(peer);
  if (peer > 0) return not_reached(peer, Obstacle::stranger);
  const std::scoped_lock lock(mutex_);
  attendance_.refusal = why;
  tell_news();
}

void Mesh::not_reached(int peer, Obstacle obstacle) {
  Peer& other = at(peer);
  other.dial.reset();
  const bool nobody = obstacle == Obstacle::refused;
  other.refusals = nobody ? other.refusals + 1 : 0;
  if (other.session.was_connected() && other.straight && !has_failed_or_left(peer) &&
      other.refusals >= (other.endpoint.is_local() ? 1 : kRefusals)) {
    return set_gone(peer);
  }
  if (peer > 0 && rank() > 0 && meeting_.tls && (peer < rank() || other.called)) {
    // The other way is next, where there is one. The lower rank begins none by itself.
    other.asks = !other.asks && at(0).session.is_connected();
    if (peer > rank() && other.asks) return dial(peer);
    other.called = false;
  }
  if (peer > 0) return;
  const std::scoped_lock lock(mutex_);
  const Obstacle before = attendance_.obstacle;
  attendance_.obstacle = before == Obstacle::unknown ? obstacle : std::max(before, obstacle);
  tell_news();
}

void Mesh::greeted(const std::shared_ptr<Introduction>& who, const std::string& text) {
  const auto refuse = [&](const char* why) { who->say(Welcome{.refused = why}.text(), [who] {}); };
  try {
    const Hello hello = Hello::parse(text);
    const int peer = hello.rank;
    if (hello.attempt != digest(attempt_)) return refuse(kOtherAttempt);
    if (hello.ranks != ranks()) return refuse(kOtherSize);
    if (peer < 0 || peer >= ranks() || peer == hello.to ||
        (hello.to != rank() && (rank() > 0 || hello.to < 0 || hello.to >= ranks()))) {
      return refuse(kNoSuchRank);
    }
    Peer& other = at(peer);
    if ((leaves_ || mailroom_.failure()) && !other.session.was_connected()) return;  // too late to come
    // Who goes on with a session that this process does not have speaks with another one that was here before.
    const bool goes_on = hello.received > 0 && !other.session.was_connected();
    if (goes_on || (!other.token.empty() && other.token != hello.token)) return refuse(kTaken);
    if (hello.to != rank()) return other.token.empty() ? refuse(kTaken) : relay(who, peer, hello.to);
    if (!hello.joins) return let_in(who, hello);
    const auto bundle = other.bundle.lock();
    if (!bundle || bundle->id() != *hello.joins || bundle->size() >= kMostConnections) return refuse(kTaken);
    who->say(joined_text(token_), [who, bundle] { bundle->add(who->release()); });
  } catch (const std::exception&) {
    refuse(kNoSuchRank);
  }
}

/// Begins or goes on with the session of the rank that says hello.
void Mesh::let_in(const std::shared_ptr<Introduction>& who, const Hello& hello) {
  const int peer = hello.rank;
  Peer& other = at(peer);
  other.token = hello.token;
  if (!meeting_.tls) other.endpoint = meeting_.at_path(peer);
  other.relayed = hello.relayed;
  other.straight = !other.relayed && peer > rank();
  other.called = false;
  other.seen_at = peer_address(who->socket()).host();
  other.dial.reset();
  other.session.lose("replaced");
  const Welcome welcome{.token = token_,
                        .connections = meeting_.connections,
                        .received = other.session.received(),
                        .bundle = ++other.bundles};
  who->say(welcome.text(), [this, who, hello, bundle = welcome.bundle] {
    // The connection is in the middle of writing, so that it must be closed before it goes.
    const auto line = line_over(hello.rank, who->release(), hello.connections, bundle);
    if (!at(hello.rank).session.attach(line, hello.received)) return line->close();
    if (rank() == 0) note_missing();
  });
}

/// Tells those who have come who has not.
void Mesh::note_missing() {
  std::vector<int> missing;
  for (int peer = 1; peer < ranks(); ++peer) {
    if (!at(peer).session.was_connected()) missing.push_back(peer);
  }
  {
    const std::scoped_lock lock(mutex_);
    if (attendance_.missing == missing) return;
    attendance_.missing = missing;
    tell_news();
  }
  for (int peer = 1; peer < ranks(); ++peer) {
    if (at(peer).session.is_connected()) send_urgent(peer, Kind::missing, buffer_of(text_of(json(missing))));
  }
}

void Mesh::hear(int peer, Kind kind, const Buffer& message) {
  try {
    const json said = parse(text_of(message));
    if (kind == Kind::call) {
      const auto from = said.at("rank").get<int>();
      if (peer != 0 || from <= rank() || from >= ranks()) throw WireError("a call from rank {}", from);
      return called(from);
    }
    if (kind == Kind::missing) {
      auto missing = said.get<std::vector<int>>();
      if (std::ranges::any_of(missing, [&](int other) { return other < 1 || other >= ranks(); })) {
        throw WireError("ranks that are missing, of which one is none of {} ranks", ranks());
      }
      const std::scoped_lock lock(mutex_);
      attendance_.missing = std::move(missing);
      return tell_news();
    }
    const Failure failure = failure_in(said, ranks());
    if (!mailroom_.set_failure(failure)) return;
    tell_news();
    spread(failure, peer);  // who leaves because of it is to have told why
  } catch (const std::exception& error) {
    set_broken(peer, error.what());
  }
}

/// The rank has said what cannot be.
void Mesh::set_broken(int peer, const std::string& reason) {
  set_gone(peer, fmt::format("rank {}, to rank {}: {}", peer, rank(), reason).substr(0, kMaxReason));
}

void Mesh::set_gone(int peer, const std::string& reason) {
  if (has_failed_or_left(peer)) return;
  const Failure failure{.rank = peer, .diverged = false, .reason = reason};
  if (!mailroom_.set_failure(failure)) return;
  tell_news();
  spread(failure, rank());
}

}  // namespace strait::tcp
