#include "strait/transport/group.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cstring>

#include "strait/base/text.h"
#include "strait/transport/loopback.h"

namespace strait {
namespace {

/// That of a group without other ranks.
class NoPeers : public ControlChannel {
 public:
  void post(const ControlMessage& /*message*/) override {}
  void deliver(const ControlMessage& /*message*/) override {}
};

/// The texts one after another, each behind its length.
Buffer pack(const std::vector<std::string>& texts) {
  size_t size = 0;
  for (const auto& text : texts) size += sizeof(uint64_t) + text.size();
  Buffer buffer(size);
  buffer.resize(size);
  ByteWriter out(buffer.bytes());
  for (const auto& text : texts) {
    out.put(static_cast<uint64_t>(text.size()));
    std::memcpy(out.claim(text.size()).data(), text.data(), text.size());
  }
  return buffer;
}

std::vector<std::string> unpack(const Buffer& buffer) {
  ByteReader in(buffer.bytes());
  std::vector<std::string> texts;
  while (in.left() > 0) {
    const auto bytes = in.take(in.get<uint64_t>());
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return texts;
}

}  // namespace

Failure failure_of(const std::exception& error, int rank) {
  if (const auto* other = dynamic_cast<const RankGaveUp*>(&error)) {
    return {.rank = other->rank, .diverged = false, .reason = other->reason};
  }
  return {.rank = rank,
          .diverged = dynamic_cast<const NumericError*>(&error) != nullptr,
          .reason = reason_text(error)};
}

void Group::all_reduce(at::Tensor& tensor, const std::string& what) {
  const auto type = tensor.scalar_type();
  STRAIT_CHECK(tensor.is_contiguous() && tensor.device().is_cpu() &&
                   (type == at::kFloat || type == at::kDouble || type == at::kLong),
               "the sum of {} over the ranks is one of {} on {}", what, toString(type), tensor.device().str());
  if (rank() > 0) {
    send(tensor, 0, what);
    return receive(tensor, 0, what);
  }
  const at::NoGradGuard no_grad;
  at::Tensor part = at::empty_like(tensor);
  for (int from = 1; from < size(); ++from) {
    receive(part, from, what);
    tensor.add_(part);
  }
  for (int to = 1; to < size(); ++to) send(tensor, to, what);
}

std::vector<std::string> Group::gather_over(const std::string& mine,
                                            const std::function<void(int to, Buffer bytes)>& send,
                                            const std::function<Buffer(int from)>& receive) const {
  const auto receive_from = [&](int from, int count) {
    auto texts = unpack(receive(from));
    if (texts.size() != static_cast<size_t>(count)) {
      throw WireError("rank {}, {}: {} texts, expected {}", rank(), kExchange, texts.size(), count);
    }
    return texts;
  };
  if (rank() > 0) {
    send(0, pack({mine}));
    return receive_from(0, size());
  }
  std::vector<std::string> all = {mine};
  for (int from = 1; from < size(); ++from) all.push_back(std::move(receive_from(from, 1).front()));
  for (int to = 1; to < size(); ++to) send(to, pack(all));
  return all;
}

void SingleProcessGroup::send(const at::Tensor& /*tensor*/, int to, const std::string& what) {
  throw InternalError("{} was to go to rank {} of one process", what, to);
}

void SingleProcessGroup::receive(at::Tensor& /*tensor*/, int from, const std::string& what) {
  throw InternalError("{} was to come from rank {} of one process", what, from);
}

std::unique_ptr<Transport> SingleProcessGroup::make_transport(std::vector<int> /*peers*/,
                                                              std::vector<std::string> /*names*/) {
  return std::make_unique<Loopback>();
}

std::unique_ptr<ControlChannel> SingleProcessGroup::make_control(std::vector<int> peers,
                                                                 const std::string& what,
                                                                 ControlHandler /*handle*/) {
  STRAIT_CHECK(peers.empty(), "{} was to go to rank {} of one process", what, peers.front());
  return std::make_unique<NoPeers>();
}

void run_collectively(Group& group, const std::function<void()>& work) {
  constexpr char kWrongInput = 'i';
  constexpr char kOther = 'o';
  std::string reason;  // empty: it worked; else one of these and the error's text
  std::exception_ptr mine;
  try {
    work();
  } catch (const std::exception& error) {
    reason = dynamic_cast<const InputError*>(&error) == nullptr ? kOther : kWrongInput;
    reason += reason_text(error);
    mine = std::current_exception();
  }
  const auto reasons = group.gather(reason);
  if (std::ranges::all_of(reasons, &std::string::empty)) return;
  // Nobody goes before all have the reasons, which word of his end could overtake.
  try {
    group.gather("");
  } catch (const std::exception&) {  // somebody has gone, who had them
  }
  if (mine) std::rethrow_exception(mine);
  for (size_t rank = 0; rank < reasons.size(); ++rank) {
    const std::string& theirs = reasons[rank];
    if (!theirs.empty()) throw RankGaveUp(static_cast<int>(rank), theirs.substr(1), theirs[0] == kWrongInput);
  }
}

void in_turn(Group& group, const std::function<void()>& work) {
  for (int rank = 0; rank < group.size(); ++rank) {
    run_collectively(group, [&] {
      if (rank == group.rank()) work();
    });
  }
}

}  // namespace strait
