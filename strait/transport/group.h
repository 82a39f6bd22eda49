#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strait/base/bytes.h"
#include "strait/base/error.h"
#include "strait/transport/control.h"
#include "strait/transport/link_status.h"
#include "strait/transport/transport.h"

namespace strait {

/// Why a rank ends, for the others to hear.
struct Failure {
  int rank = 0;           ///< that ends
  bool diverged = false;  ///< training did, as opposed to something that broke
  std::string reason;     ///< one line
};

/// Work that the ranks do together failed at one of them, and all have heard it from the exchange itself.
class RankGaveUp : public PeerError {
 public:
  /// `rank` failed, for `reason`; `is_wrong_input` where that was an InputError.
  RankGaveUp(int rank, const std::string& reason, bool is_wrong_input)
      : PeerError("rank {} gave up: {}", rank, reason),
        rank(rank),
        reason(reason),
        is_wrong_input(is_wrong_input) {}

  int rank;             ///< that failed
  std::string reason;   ///< one line, as that rank gave it
  bool is_wrong_input;  ///< so that trying again would fail again
};

/// What `rank` has to tell the others when it ends with `error`: its own failure, or, where another gave up,
/// that one's. Whoever still waits for the exchange in which it did may hear of it from here first.
Failure failure_of(const std::exception& error, int rank);

/// The processes that train together, as one of them sees them. All members are collective: every rank calls
/// them in the same order. They throw PeerError that names the peer when one does not answer within the timeout
/// or is gone, and NumericError when that is because training diverged there.
class Group {
 public:
  virtual ~Group() = default;

  /// This process's number, from 0.
  virtual int rank() const = 0;

  /// How many processes there are.
  virtual int size() const = 0;

  /// What each rank gave, in the order of ranks.
  virtual std::vector<std::string> gather(const std::string& mine) = 0;

  /// A contiguous tensor in host memory, its bytes as they are, from one rank to another. `what` says in an
  /// error what it is.
  virtual void send(const at::Tensor& tensor, int to, const std::string& what) = 0;

  /// The other side of send(): fills `tensor`, contiguous in host memory, of the sender's shape and type.
  virtual void receive(at::Tensor& tensor, int from, const std::string& what) = 0;

  /// Replaces the tensor by its sum over all ranks: contiguous, in host memory, float, double or int64, of one
  /// shape everywhere. Added in the order of ranks, so that all get the same bits.
  void all_reduce(at::Tensor& tensor, const std::string& what);

  /// The transport over boundaries: boundary `b` leads to the rank peers[b] (-1: none of this rank's), and is
  /// called names[b]. The group must outlive it.
  virtual std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) = 0;

  /// A channel to these ranks for messages beside the data, which `handle` gets; every rank makes one, and
  /// those of one call belong together. `what` says in an error what they are about.
  virtual std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                                       ControlHandler handle) = 0;

  /// The ways to the others with whom this process has spoken, not collective; none where what carries the
  /// messages does not tell.
  virtual std::vector<LinkStatus> links() const { return {}; }

  /// From any thread: tells the others why this rank ends, and ends all waits, those to come too.
  virtual void fail(const Failure& failure) = 0;

 protected:
  /// What gather() is, for an error.
  static constexpr const char* kExchange = "exchange between the ranks";

  /// For whom it waits, for an error: which rank keeps the others waiting is not known.
  static constexpr int kNobody = -1;

  /// gather() over what takes bytes from this rank to another and back: the first rank gathers, and tells all.
  std::vector<std::string> gather_over(const std::string& mine,
                                       const std::function<void(int to, Buffer bytes)>& send,
                                       const std::function<Buffer(int from)>& receive) const;
};

/// One process by itself.
class SingleProcessGroup : public Group {
 public:
  /// Always 0.
  int rank() const override { return 0; }

  /// Always 1.
  int size() const override { return 1; }
  std::vector<std::string> gather(const std::string& mine) override { return {mine}; }
  void send(const at::Tensor& tensor, int to, const std::string& what) override;

  /// There is nobody to receive from: a broken invariant.
  void receive(at::Tensor& tensor, int from, const std::string& what) override;
  std::unique_ptr<Transport> make_transport(std::vector<int> peers, std::vector<std::string> names) override;
  std::unique_ptr<ControlChannel> make_control(std::vector<int> peers, const std::string& what,
                                               ControlHandler handle) override;
  void fail(const Failure& /*failure*/) override {}
};

/// Runs `work` on every rank. When it throws on any of them, it throws on all: there what it threw, elsewhere
/// PeerError with the rank and the reason. So that no rank waits for one that has given up in order.
void run_collectively(Group& group, const std::function<void()>& work);

/// The same, but one rank after the other: for what lies in folders that ranks may share.
void in_turn(Group& group, const std::function<void()>& work);

}  // namespace strait
