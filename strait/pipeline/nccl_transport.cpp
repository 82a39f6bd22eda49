#include "strait/pipeline/nccl_transport.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "strait/base/error.h"
#include "strait/codecs/device_order.h"
#include "strait/transport/failure.h"

namespace strait {
namespace {

using std::chrono::steady_clock;

/// From an error of NCCL's to word from the other processes.
constexpr std::chrono::milliseconds kPatience(1000);

/// Of a boundary and direction.
struct NcclLane {
  NcclLane(int other, c10::Device device) : peer(other), stream(device) {}

  int peer;                          ///< its rank in the communicator, which has two
  OwnStream stream;                  ///< on which operations wait for each other
  NcclLibrary::Comm comm = nullptr;  ///< null once it has been given up
  DevicePoint last;                  ///< behind its last operation
};

/// The lanes of a process.
class NcclWire : public DeviceWire {
 public:
  /// The transport tells when other processes are gone.
  NcclWire(const Transport& transport, const NcclLibrary& library, const NcclOptions& options, int rank,
           std::vector<int> peers, std::vector<std::string> names)
      : transport_(transport),
        library_(library),
        options_(options),
        rank_(rank),
        peers_(std::move(peers)),
        names_(std::move(names)) {}

  /// Waits for what is sent, as long as the other ends are there.
  ~NcclWire() override {
    bool is_done = false;
    try {
      drain();
      is_done = true;
    } catch (const std::exception&) {  // who waits for a message hears why it does not come
    }
    close(is_done ? library_.comm_destroy : library_.comm_abort);
  }
  NcclWire(const NcclWire&) = delete;
  NcclWire& operator=(const NcclWire&) = delete;

  /// Both ends call it for each of their lanes, in one order.
  void connect(Tag tag, Group& group) {
    const int other = peers_[tag.boundary()];
    NcclLibrary::UniqueId id{};
    at::Tensor bytes = at::empty({sizeof(id)}, at::kByte);
    const std::string where = where_of(tag);
    if (rank_ < other) {
      check(library_.get_unique_id(&id), where);
      std::copy_n(id.bytes, sizeof(id), bytes.data_ptr<uint8_t>());
      group.send(bytes, other, where);
    } else {
      group.receive(bytes, other, where);
      std::copy_n(bytes.data_ptr<uint8_t>(), sizeof(id), id.bytes);
    }
    NcclLane& lane = lanes_.try_emplace(key_of(tag), rank_ < other ? 1 : 0, options_.device).first->second;
    NcclLibrary::Config config;
    check(library_.comm_init_rank_config(&lane.comm, 2, id, 1 - lane.peer, &config), where);
    wait_until(lane, tag, [] { return true; });
  }

  bool has(Tag tag) const { return lanes_.contains(key_of(tag)); }

  /// Waits until all is sent.
  void drain() {
    for (auto& [key, lane] : lanes_) wait_for(lane, Tag(key.first, key.second, 0));
  }

  /// From any thread: ends what is under way, and every wait.
  void give_up() { close(library_.comm_abort); }

  void send(Tag tag, const at::Tensor& bytes) override {
    run(tag, [&](const NcclLane& lane) {
      const auto size = static_cast<size_t>(bytes.numel());
      check(library_.send(bytes.data_ptr(), size, NcclLibrary::kUint8, lane.peer, lane.comm,
                          current_stream_handle(options_.device)),
            where_of(tag));
      keep_for_current_stream(bytes);
    });
  }
  at::Tensor receive(Tag tag, size_t size) override {
    at::Tensor bytes =
        at::empty({static_cast<int64_t>(size)}, at::TensorOptions(at::kByte).device(options_.device));
    NcclLane& lane = run(tag, [&](const NcclLane& of) {
      check(library_.receive(bytes.data_ptr(), size, NcclLibrary::kUint8, of.peer, of.comm,
                             current_stream_handle(options_.device)),
            where_of(tag));
      keep_for_current_stream(bytes);
    });
    wait_for(lane, tag);
    lane.last.wait();
    return bytes;
  }

 private:
  using Key = std::pair<uint32_t, Direction>;
  static Key key_of(Tag tag) { return {tag.boundary(), tag.direction()}; }

  std::string where_of(Tag tag) const {
    return fmt::format("rank {}, boundary {}, {}", rank_, names_[tag.boundary()], to_string(tag.direction()));
  }

  void check(NcclLibrary::Result result, const std::string& where) const {
    if (result == NcclLibrary::kSuccess || result == NcclLibrary::kInProgress) return;
    throw Error("{}: NCCL: {} (NCCL_DEBUG=WARN tells more; each process needs a card of its own)", where,
                library_.get_error_string(result));
  }

  /// Gives the lane an operation, behind what the calling thread has given its stream.
  template <class Operation>
  NcclLane& run(Tag tag, const Operation& operation) {
    NcclLane& lane = lanes_.at(key_of(tag));
    lane.last = lane.stream.run(DevicePoint::here(options_.device), [&] {
      {
        const std::scoped_lock lock(mutex_);
        if (lane.comm == nullptr) throw Error("{}: {}", where_of(tag), kGivenUp);
        operation(lane);
      }
      wait_until(lane, tag, [] { return true; });  // a thread of NCCL's gives it to the stream
    });
    return lane;
  }

  /// Waits until the lane's last operation is done: the other end may end before it, and the device would wait
  /// for ever.
  void wait_for(NcclLane& lane, Tag tag) {
    wait_until(lane, tag, [&] { return lane.last.has_passed(); });
  }

  /// Waits until NCCL has nothing to do for the lane and `is_ready` says so too. Throws PeerError where the
  /// other end is gone or silent, and Error once the lane is given up.
  template <class IsReady>
  void wait_until(NcclLane& lane, Tag tag, const IsReady& is_ready) {
    using std::chrono::microseconds;
    const auto end = steady_clock::now() + part_to_wait(options_.timeout);
    microseconds pause(5);
    // What is given up meanwhile counts as ready.
    const auto is_done = [&] { return is_idle(lane, tag) && is_ready() && is_idle(lane, tag); };
    while (!is_done()) {
      try {
        transport_.check(tag);
        if (steady_clock::now() > end) throw_silence(where_of(tag), peers_[tag.boundary()], options_.timeout);
      } catch (const Error&) {
        if (is_done()) return;  // it has left, and not before
        throw;
      }
      std::this_thread::sleep_for(pause);
      pause = std::min(2 * pause, microseconds(200));
    }
  }

  /// Whether NCCL does nothing for the lane.
  bool is_idle(NcclLane& lane, Tag tag) {
    NcclLibrary::Result state = NcclLibrary::kSuccess;
    {
      const std::scoped_lock lock(mutex_);
      if (lane.comm == nullptr) throw Error("{}: {}", where_of(tag), kGivenUp);
      library_.comm_get_async_error(lane.comm, &state);
    }
    if (state == NcclLibrary::kSuccess || state == NcclLibrary::kInProgress)
      return state == NcclLibrary::kSuccess;
    // The transport may hear a little later which process has gone, and why.
    for (const auto end = steady_clock::now() + kPatience; steady_clock::now() < end;) {
      transport_.check(tag);
      std::this_thread::sleep_for(kPatience / 100);
    }
    throw PeerError("{}: {}: NCCL: {}", where_of(tag), name_of_rank(peers_[tag.boundary()]),
                    library_.get_error_string(state));
  }

  /// Ends each lane by this function of the library.
  void close(NcclLibrary::EndComm end) {
    const std::scoped_lock lock(mutex_);
    for (auto& [key, lane] : lanes_) {
      if (lane.comm != nullptr) end(std::exchange(lane.comm, nullptr));
    }
  }

  const Transport& transport_;
  const NcclLibrary& library_;
  NcclOptions options_;
  int rank_;
  std::vector<int> peers_;
  std::vector<std::string> names_;
  std::mutex mutex_;               ///< of the communicators, which are given up by any thread
  std::map<Key, NcclLane> lanes_;  ///< the same from connect() on
};

class NcclTransport : public Transport {
 public:
  NcclTransport(std::unique_ptr<Transport> transport, std::unique_ptr<NcclWire> wire)
      : transport_(std::move(transport)), wire_(std::move(wire)) {}

  void send(Tag tag, Buffer message) override { transport_->send(tag, std::move(message)); }
  void expect(Tag tag, size_t bound) override { transport_->expect(tag, bound); }
  Buffer receive(Tag tag, size_t bound) override { return transport_->receive(tag, bound); }
  void drain() override {
    transport_->drain();
    wire_->drain();
  }
  void cancel() override {
    transport_->cancel();
    wire_->give_up();
  }
  void check(Tag tag) const override { transport_->check(tag); }
  FrameCheck frame_check() const override { return transport_->frame_check(); }
  DeviceWire* device_wire(Tag tag) override { return wire_->has(tag) ? wire_.get() : nullptr; }

 private:
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<NcclWire> wire_;  // last: it uses the other
};

}  // namespace

std::unique_ptr<Transport> over_nccl(std::unique_ptr<Transport> transport, Group& group,
                                     const std::vector<int>& peers, const std::vector<std::string>& names,
                                     const NcclOptions& options, const NcclLibrary& (*library)()) {
  if (group.size() == 1) return transport;
  const bool is_here = !options.device.is_cpu();
  std::vector<int> next;  // ranks to which this one has a boundary, and has a device itself
  if (is_here) std::ranges::copy_if(peers, std::back_inserter(next), [](int peer) { return peer >= 0; });
  const std::vector<std::string> devices = group.gather(is_here ? "device" : "");
  const auto has_device = [&](int rank) { return !devices.at(static_cast<size_t>(rank)).empty(); };
  const bool has_lanes = std::ranges::any_of(next, has_device);
  const auto all = group.gather(has_lanes ? "lanes" : "");
  if (std::ranges::all_of(all, &std::string::empty)) {
    throw InputError(
        "pipeline.transport: \"nccl\" expects a CUDA device in both processes of a boundary at least, found "
        "none");
  }
  run_collectively(group, [&] {
    if (has_lanes) library();
  });
  if (!has_lanes) return transport;
  auto wire = std::make_unique<NcclWire>(*transport, library(), options, group.rank(), peers, names);
  for (uint32_t boundary = 0; boundary < peers.size(); ++boundary) {
    if (peers[boundary] < 0 || !has_device(peers[boundary])) continue;
    for (const Direction direction : {Direction::activation, Direction::gradient})
      wire->connect(Tag(boundary, direction, 0), group);
  }
  return std::make_unique<NcclTransport>(std::move(transport), std::move(wire));
}

}  // namespace strait
