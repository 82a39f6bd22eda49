#include "strait/transport/c10d/torchruns_store.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/transport/c10d/store_call.h"
#include "strait/transport/join_group.h"

namespace strait {
namespace {

constexpr const char* kPortKey = "port";
constexpr std::chrono::milliseconds kBetweenStoreLooks(50);

}  // namespace

c10::intrusive_ptr<c10d::Store> open_torchruns_store(const Membership& membership,
                                                     std::chrono::milliseconds timeout) {
  const auto silent = [&] {
    return Error("rank {}: torchrun does not answer at {}", membership.rank, membership.rendezvous_endpoint());
  };
  c10d::TCPStoreOptions options;
  options.port = membership.master_port;
  options.waitWorkers = false;
  options.timeout = timeout;
  c10::intrusive_ptr<c10d::Store> store;
  try {
    store = c10::make_intrusive<c10d::PrefixStore>(
        "strait/" + membership.attempt,
        c10::make_intrusive<c10d::TCPStore>(membership.master_address, options));
  } catch (const std::exception&) {
    throw silent();
  }
  const std::string key = fmt::format("taken/{}", membership.rank);
  const auto taken = within<int64_t>(timeout * 3 / 4, [store, key] { return store->add(key, 1); });
  if (!taken) throw silent();
  if (*taken != 1) throw RankTaken(membership);
  return store;
}

void tell_port(c10d::Store& store, uint16_t port) {
  store.set(kPortKey, store::bytes_of(std::to_string(port)));
}

uint16_t told_port(const c10::intrusive_ptr<c10d::Store>& store, const Membership& membership,
                   std::chrono::milliseconds timeout) {
  const auto text = within<std::string>(timeout, [store, timeout] {
    const auto end = std::chrono::steady_clock::now() + timeout;
    while (!store->check({kPortKey}) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kBetweenStoreLooks);
    }
    return store::text_of(store->get(kPortKey));
  });
  if (!text) {
    throw Error("rank {}: rank 0 has not said within {} s where it listens", membership.rank,
                timeout.count() / 1000);
  }
  return static_cast<uint16_t>(parse_integer(*text, "rank 0's port", 1, 65535));
}

}  // namespace strait
