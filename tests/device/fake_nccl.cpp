#include "tests/device/fake_nccl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "tests/device/fake_device.h"

namespace strait::fake {
namespace {

using Result = NcclLibrary::Result;

using std::chrono::steady_clock;

constexpr Result kInvalidArgument = 4;
constexpr Result kRemoteError = 6;

std::atomic<int> messages = 0;
std::atomic<std::chrono::milliseconds> patience = std::chrono::milliseconds(20'000);

/// Two ends, which have the same id.
struct Line {
  std::mutex mutex;
  std::array<std::deque<std::vector<std::byte>>, 2> to;
  int ends = 0;
  bool is_broken = false;
};

/// A receive that has not been given to the stream yet.
struct Receive {
  void* bytes;
  size_t count;
  void* stream;
  steady_clock::time_point begin;
};

struct End {
  std::shared_ptr<Line> line;
  int rank;
  std::optional<Receive> receive = {};
  Result error = NcclLibrary::kSuccess;  ///< which stays
};

Result get_unique_id(NcclLibrary::UniqueId* id) {
  static std::atomic<uint64_t> next = 1;
  const uint64_t number = next++;
  std::memcpy(id->bytes, &number, sizeof(number));
  return NcclLibrary::kSuccess;
}

Result comm_init_rank_config(NcclLibrary::Comm* comm, int ranks, NcclLibrary::UniqueId id, int rank,
                             NcclLibrary::Config* config) {
  static std::mutex mutex;
  static std::map<uint64_t, std::shared_ptr<Line>> lines;
  if (ranks != 2 || rank < 0 || rank > 1 || config->blocking != 0) return kInvalidArgument;
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Line> line;
  {
    const std::scoped_lock lock(mutex);
    auto& found = lines[number];
    if (!found) found = std::make_shared<Line>();
    line = found;
  }
  *comm = new End{line, rank};
  const std::scoped_lock lock(line->mutex);
  return ++line->ends == 2 ? NcclLibrary::kSuccess : NcclLibrary::kInProgress;
}

Result send(const void* bytes, size_t count, int type, int peer, NcclLibrary::Comm comm, void* stream) {
  const End& end = *static_cast<End*>(comm);
  if (type != NcclLibrary::kUint8 || peer != 1 - end.rank) return kInvalidArgument;
  auto message = read(bytes, count, stream);
  const std::scoped_lock lock(end.line->mutex);
  end.line->to.at(static_cast<size_t>(peer)).push_back(std::move(message));
  ++messages;
  return NcclLibrary::kSuccess;
}

Result receive(void* bytes, size_t count, int type, int peer, NcclLibrary::Comm comm, void* stream) {
  End& end = *static_cast<End*>(comm);
  if (type != NcclLibrary::kUint8 || peer != 1 - end.rank || end.receive) return kInvalidArgument;
  end.receive = {bytes, count, stream, steady_clock::now()};
  return NcclLibrary::kInProgress;
}

/// What becomes of the receive.
Result go_on(End& end) {
  const Receive receive = *end.receive;
  auto& queue = end.line->to.at(static_cast<size_t>(end.rank));
  if (queue.empty()) {
    if (steady_clock::now() - receive.begin < patience.load()) return NcclLibrary::kInProgress;
    write(receive.bytes, {}, receive.stream);
    hold(true);
  } else {
    const std::vector<std::byte> message = std::move(queue.front());
    queue.pop_front();
    if (message.size() != receive.count) return end.error = kInvalidArgument;
    write(receive.bytes, message, receive.stream);
  }
  end.receive.reset();
  return NcclLibrary::kSuccess;
}

Result comm_get_async_error(NcclLibrary::Comm comm, Result* error) {
  End& end = *static_cast<End*>(comm);
  const std::scoped_lock lock(end.line->mutex);
  if (end.line->is_broken) {
    *error = kRemoteError;
  } else if (end.error != NcclLibrary::kSuccess) {
    *error = end.error;
  } else if (end.line->ends < 2) {
    *error = NcclLibrary::kInProgress;
  } else {
    *error = end.receive ? go_on(end) : NcclLibrary::kSuccess;
  }
  return NcclLibrary::kSuccess;
}

Result comm_destroy(NcclLibrary::Comm comm) {
  delete static_cast<End*>(comm);
  return NcclLibrary::kSuccess;
}

Result comm_abort(NcclLibrary::Comm comm) {
  {
    const End& end = *static_cast<End*>(comm);
    const std::scoped_lock lock(end.line->mutex);
    end.line->is_broken = true;
  }
  return comm_destroy(comm);
}

const char* get_error_string(Result result) {
  return result == kInvalidArgument ? "invalid argument" : "remote process exited or there was a network error";
}

}  // namespace

const NcclLibrary& nccl() {
  static const NcclLibrary library{get_unique_id,        comm_init_rank_config, send,       receive,
                                   comm_get_async_error, comm_destroy,          comm_abort, get_error_string};
  return library;
}

void set_patience(std::chrono::milliseconds wait) { patience = wait; }

int take_nccl_messages() { return messages.exchange(0); }

}  // namespace strait::fake
