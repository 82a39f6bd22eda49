#include "strait/transport/tcp/join_tcp_group.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/c10d/torchruns_store.h"
#include "strait/transport/tcp/secret.h"
#include "strait/transport/tcp/tcp_group.h"

namespace strait {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kLook(250);  // between two words to the person that waits

/// Why rank 0 does not let this rank in.
[[noreturn]] void throw_refusal(const Membership& membership, const std::string& why) {
  if (why == tcp::kTaken) throw RankTaken(membership);
  if (why == tcp::kOtherAttempt) {
    throw Error("rank {}: another training meets at {}; use another port, or wait for its end", membership.rank,
                membership.rendezvous_endpoint());
  }
  throw Error("rank {}: the group at {} has another number of processes (WORLD_SIZE)", membership.rank,
              membership.rendezvous_endpoint());
}

/// Why rank 0 was not found.
[[noreturn]] void throw_obstacle(const Membership& membership, tcp::Obstacle obstacle, milliseconds timeout) {
  if (obstacle == tcp::Obstacle::secret) {
    throw InputError("rank {}: rank 0 at {} has another secret; {} must be the same for every rank",
                     membership.rank, membership.rendezvous_endpoint(), kSecretVariable);
  }
  if (obstacle == tcp::Obstacle::stranger) {
    throw Error("rank {}: what listens at {} does not answer as rank 0 would", membership.rank,
                membership.rendezvous_endpoint());
  }
  if (obstacle == tcp::Obstacle::unknown) {
    throw Error(
        "rank {}: the host of {}, where rank 0 should be, has no known address: expected a name or an address",
        membership.rank, membership.rendezvous_endpoint());
  }
  throw Error("rank {}: nothing answers at {}, where rank 0 should be, for {} s", membership.rank,
              membership.rendezvous_endpoint(), timeout.count() / 1000);
}

std::string why_not_all(const Membership& membership, const tcp::Mesh::Attendance& attendance,
                        milliseconds timeout) {
  std::vector<std::string> names;
  for (const int rank : attendance.missing) names.push_back(std::to_string(rank));
  const std::string refused =
      attendance.last_refused.empty() ? "" : fmt::format("; one was refused, {}", attendance.last_refused);
  return fmt::format("of {} ranks these did not come within {} s: {}{}", membership.size,
                     timeout.count() / 1000, list_of(names), refused);
}

/// Waits until all have come.
void meet(tcp::Mesh& mesh, const Membership& membership, milliseconds patience, const WaitingFor& waiting) {
  const auto end = steady_clock::now() + patience - limited(kReserve, patience);
  auto& mailroom = mesh.mailroom();
  while (true) {
    const auto attendance = mesh.attendance();
    const bool found =
        membership.rank == 0 || std::ranges::find(attendance.missing, 0) == attendance.missing.end();
    if (!attendance.refusal.empty()) throw_refusal(membership, attendance.refusal);
    if (!found && attendance.obstacle == tcp::Obstacle::secret) {
      throw_obstacle(membership, attendance.obstacle, patience);
    }
    if (const auto failure = mailroom.failure()) {
      const bool gone = failure->reason == kGoneReason;
      throw PeerError("rank {}: {}", membership.rank,
                      gone ? fmt::format("rank {} came, but {}", failure->rank, kGoneReason) : failure->reason);
    }
    for (int rank = 0; rank < membership.size; ++rank) {
      if (rank == membership.rank || !mailroom.has_left(rank)) continue;
      throw PeerError("rank {}: rank {} came, but has left", membership.rank, rank);
    }
    if (attendance.missing.empty()) return;
    const auto now = steady_clock::now();
    if (now >= end) {
      if (!found) throw_obstacle(membership, attendance.obstacle, patience);
      const std::string reason = why_not_all(membership, attendance, patience);
      mesh.fail({.rank = membership.rank, .diverged = false, .reason = reason});
      throw Error("rank {}: {}", membership.rank, reason);
    }
    waiting(found ? attendance.missing : std::vector<int>{0});
    mailroom.wait(std::min(end, now + kLook), [&] { return mesh.has_news(); });
  }
}

}  // namespace

std::unique_ptr<Group> join_tcp_group(const Membership& membership, int connections, milliseconds timeout,
                                      const std::string& handshake, const CheckHandshakes& check,
                                      const WaitingFor& waiting, milliseconds patience) {
  std::shared_ptr<tcp::Mesh> mesh;
  auto meeting = tcp::meeting_of(membership);
  meeting.connections = connections;
  // torchrun has the master's port.
  c10::intrusive_ptr<c10d::Store> torchruns;
  if (meeting.tls && membership.store_host == StoreHost::torchrun) {
    torchruns = open_torchruns_store(membership, timeout);
    meeting.first.port = membership.rank == 0 ? 0 : told_port(torchruns, membership, timeout);
  }
  try {
    mesh = std::make_shared<tcp::Mesh>(std::move(meeting), membership.rank, membership.size, membership.attempt,
                                       timeout);
  } catch (const tcp::PlaceTaken&) {
    throw RankTaken(membership);
  } catch (const Error& error) {
    throw Error("rank {} cannot listen at {}: {}", membership.rank, membership.rendezvous_endpoint(),
                error.what());
  }
  if (torchruns && membership.rank == 0) tell_port(*torchruns, mesh->port());
  meet(*mesh, membership, patience, waiting);
  auto group = std::make_unique<tcp::TcpGroup>(mesh);
  std::vector<std::string> cards;
  std::vector<std::string> handshakes;
  for (const auto& text : group->gather(json{{"card", mesh->card()}, {"handshake", handshake}}.dump())) {
    try {
      const json said = parse_json<WireError>(text, "what another rank says");
      cards.push_back(said.at("card").get<std::string>());
      handshakes.push_back(said.at("handshake").get<std::string>());
    } catch (const json::exception&) {
      throw WireError("rank {}: rank {} speaks another language", membership.rank, cards.size());
    }
  }
  check(handshakes);
  mesh->take_cards(cards);
  return group;
}

}  // namespace strait
