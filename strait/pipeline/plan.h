#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strait/wire/frame.h"

namespace strait {

/// What a rank can do. Stage `s` sends activations to stage `s + 1` and gradients to stage `s - 1`.
enum class Op { forward, backward, send_activation, recv_activation, send_gradient, recv_gradient };

/// How many operations there are.
constexpr int kOpCount = 6;

/// Boundaries are numbered with 16 bits on the wire; micro-batches with 32, of which this much is used.
constexpr int kMaxStages = 1 << 16;

/// The most micro-batches of a batch; they are numbered with 32 bits on the wire.
constexpr int kMaxMicroBatches = 1 << 20;

/// One operation on one micro-batch.
struct Action {
  Op op = Op::forward;  ///< what is done
  int stage = 0;        ///< the stage that computes, sends or receives
  int micro_batch = 0;  ///< position in the batch

  bool operator==(const Action&) const = default;
};

/// A schedule: what each rank does, in order. A compute-only plan has forwards and backwards; lower()
/// adds the messages, and then any executor may run it once validate() has accepted it.
struct Plan {
  int stages = 0;                          ///< of the whole pipeline
  int micro_batches = 0;                   ///< of a batch
  std::vector<int> rank_of_stage;          ///< one per stage
  std::vector<std::vector<Action>> ranks;  ///< of each rank its actions, in order

  bool operator==(const Plan&) const = default;
};

/// Whether the operation sends a message.
bool is_send(Op op);

/// Whether the operation receives a message.
bool is_receive(Op op);

/// Which way a message goes; `op` sends or receives.
Direction direction_of(Op op);

/// The boundary that a message crosses; boundary `b` lies between the stages `b` and `b + 1`. Gives -1 or
/// `stages - 1`, which no plan may contain, where an edge stage addresses a neighbour that does not exist.
int boundary_of(const Action& action);

/// `0F1`, `2B0`, `0SEND_F1`, `1RECV_F1`, `1SEND_B0`, `0RECV_B0`: stage, what, micro-batch.
std::string to_text(const Action& action);

/// One line per rank, actions separated by a blank. An idle rank is an empty line.
std::string to_text(const Plan& plan);

/// Reads what to_text() writes. The numbers of stages and micro-batches are the largest that occur, so the
/// round trip is exact for plans in which every stage acts and the last micro-batch occurs. Throws InputError
/// naming the line and the token; whether the plan makes sense is validate()'s question.
Plan parse_plan(std::string_view text);

}  // namespace strait
