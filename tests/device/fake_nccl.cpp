#include "tests/device/fake_nccl.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "tests/device/fake_device.h"

namespace strait::fake {
namespace {

using Result = NcclLibrary::Result;

constexpr Result kInvalidArgument = 4;
constexpr Result kRemoteError = 6;

std::atomic<int> messages = 0;
std::atomic<std::chrono::milliseconds> patience = std::chrono::milliseconds(20'000);

/// Two ends, which have the same id.
struct Line {
  std::mutex mutex;
  std::condition_variable changed;
  std::array<std::deque<std::vector<std::byte>>, 2> to;
  int ends = 0;
  bool is_broken = false;
};

struct End {
  std::shared_ptr<Line> line;
  int rank;
};

Result get_unique_id(NcclLibrary::UniqueId* id) {
  static std::atomic<uint64_t> next = 1;
  const uint64_t number = next++;
  std::memcpy(id->bytes, &number, sizeof(number));
  return NcclLibrary::kSuccess;
}

Result comm_init_rank(NcclLibrary::Comm* comm, int ranks, NcclLibrary::UniqueId id, int rank) {
  static std::mutex mutex;
  static std::map<uint64_t, std::shared_ptr<Line>> lines;
  if (ranks != 2 || rank < 0 || rank > 1) return kInvalidArgument;
  uint64_t number = 0;
  std::memcpy(&number, id.bytes, sizeof(number));
  std::shared_ptr<Line> line;
  {
    const std::scoped_lock lock(mutex);
    auto& found = lines[number];
    if (!found) found = std::make_shared<Line>();
    line = found;
  }
  std::unique_lock lock(line->mutex);
  ++line->ends;
  line->changed.notify_all();
  line->changed.wait(lock, [&] { return line->ends == 2; });
  *comm = new End{line, rank};
  return NcclLibrary::kSuccess;
}

Result send(const void* bytes, size_t count, int type, int peer, NcclLibrary::Comm comm, void* stream) {
  const End& end = *static_cast<End*>(comm);
  if (type != NcclLibrary::kUint8 || peer != 1 - end.rank) return kInvalidArgument;
  auto message = read(bytes, count, stream);
  const std::scoped_lock lock(end.line->mutex);
  end.line->to.at(static_cast<size_t>(peer)).push_back(std::move(message));
  end.line->changed.notify_all();
  ++messages;
  return NcclLibrary::kSuccess;
}

Result receive(void* bytes, size_t count, int type, int peer, NcclLibrary::Comm comm, void* stream) {
  const End& end = *static_cast<End*>(comm);
  if (type != NcclLibrary::kUint8 || peer != 1 - end.rank) return kInvalidArgument;
  std::unique_lock lock(end.line->mutex);
  auto& queue = end.line->to.at(static_cast<size_t>(end.rank));
  if (!end.line->changed.wait_for(lock, patience.load(), [&] { return !queue.empty(); })) {
    hold(true);
    write(bytes, {}, stream);
    return NcclLibrary::kSuccess;
  }
  const std::vector<std::byte> message = std::move(queue.front());
  queue.pop_front();
  if (message.size() != count) return kInvalidArgument;
  write(bytes, message, stream);
  return NcclLibrary::kSuccess;
}

Result comm_get_async_error(NcclLibrary::Comm comm, Result* error) {
  const End& end = *static_cast<End*>(comm);
  const std::scoped_lock lock(end.line->mutex);
  *error = end.line->is_broken ? kRemoteError : NcclLibrary::kSuccess;
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
  static const NcclLibrary library{get_unique_id,        comm_init_rank, send,       receive,
                                   comm_get_async_error, comm_destroy,   comm_abort, get_error_string};
  return library;
}

void set_patience(std::chrono::milliseconds wait) { patience = wait; }

int take_nccl_messages() { return messages.exchange(0); }

}  // namespace strait::fake
