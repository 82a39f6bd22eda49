#pragma once

#include <vector>

#include "strait/base/link_rate.h"
#include "strait/pipeline/critical_path.h"
#include "strait/pipeline/plan.h"

namespace strait {

/// What one message costs.
struct MessageCost {
  double bytes = 0;           ///< on the wire
  double encode_seconds = 0;  ///< at the sender
  double decode_seconds = 0;  ///< at the receiver
};

/// The link that a boundary's messages cross.
struct BoundaryLink {
  LinkRate activations;  ///< to the stage behind the boundary
  LinkRate gradients;    ///< to the stage before it
};

/// Who encodes and decodes on a rank.
enum class CodecPlace {
  own_threads,     ///< one thread that encodes and one that decodes, beside the computation
  compute_thread,  ///< the thread that computes, at the send or the receive
};

/// What the parts of a plan cost.
struct CostModel {
  std::vector<double> forward;                       ///< seconds, of a stage
  std::vector<double> backward;                      ///< seconds, of a stage
  std::vector<MessageCost> activation;               ///< of a boundary
  std::vector<MessageCost> gradient;                 ///< of a boundary
  LinkRate link = {};                                ///< between any two ranks
  std::vector<BoundaryLink> boundary_links = {};     ///< one for each boundary, instead of `link`; or none
  CodecPlace codec_place = CodecPlace::own_threads;  ///< on every rank

  /// The same for every stage, and for every boundary in both directions.
  static CostModel uniform(int stages, double forward, double backward, const MessageCost& message = {});
};

/// One action as it ran.
struct Step {
  Action action;     ///< of the plan
  int rank = 0;      ///< that runs it
  double start = 0;  ///< of a receive: when the message is there and the rank has come to it
  double end = 0;    ///< of a send: when the message arrives, though the rank works on before
};

/// Seconds in which the parts of a rank work.
struct RankBusy {
  double compute = 0;  ///< forward and backward
  double encode = 0;   ///< of messages that it sends
  double decode = 0;   ///< of messages that it receives
  double wire = 0;     ///< what the rank sends
};

/// How a plan would run.
struct Simulation {
  std::vector<Step> steps;           ///< by start; a total order in which one process can run the plan
  std::vector<int> peak_live;        ///< per stage: micro-batches between forward and backward at one time
  double makespan = 0;               ///< seconds until the last rank is done
  std::vector<RankBusy> busy;        ///< per rank
  std::vector<double> bubble_share;  ///< per rank: the part of the makespan in which it does not compute
  TimeShares shares;                 ///< what the makespan is made of
};

/// Runs a lowered plan without computing anything. A rank has
/// - a thread that goes through its actions in order: sends take none of its time, receives wait for the
///   decoded message;
/// - with CodecPlace::own_threads a thread that encodes messages in the order in which they are sent, and one
///   that decodes them in the order in which the plan receives them, however they arrive. With compute_thread,
///   encoding is part of the send and decoding of the receive;
/// - a wire that sends one message at a time, in the order in which they were encoded, to whatever rank, at the
///   rate of the boundary's link; a message arrives a latency after its last byte was sent.
///
/// A message between two stages of one rank is encoded and decoded, and crosses no wire. Nothing that becomes
/// faster makes the step slower. Not modelled: a limit to what a rank receives (in a steady pipeline a rank
/// receives about what it sends), buffers that are full, and slowdown of a computation by what runs beside
/// it.
///
/// Takes time in proportion to the actions, times the logarithm of the ranks. Throws what validate() throws,
/// InputError on a deadlock (the message lists what each rank waits for), and InputError when the cost model
/// has the wrong number of entries or one that cannot be.
Simulation simulate(const Plan& plan, const CostModel& costs);

/// The same of a plan that validate() has taken, with the passes_of() it: for one that is simulated again and
/// again.
Simulation simulate_valid(const Plan& plan, const CostModel& costs);

/// With a backward twice as long as a forward and messages that cost nothing.
Simulation simulate(const Plan& plan);

}  // namespace strait
