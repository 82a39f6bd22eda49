#pragma once

#include <vector>

#include "strait/pipeline/plan.h"

namespace strait {

/// Seconds that the parts of a plan take.
struct CostModel {
  std::vector<double> forward;   ///< of a stage
  std::vector<double> backward;  ///< of a stage

  // Of a message over a boundary, latency included. Each boundary and direction is a link of its own that
  // carries one message at a time.
  std::vector<double> activation;
  std::vector<double> gradient;

  /// The same for every stage and every boundary.
  static CostModel uniform(int stages, double forward, double backward, double message);
};

/// One action as it ran.
struct Step {
  Action action;
  int rank = 0;
  double start = 0;  ///< of a receive: when the message is there and the rank has come to it
  double end = 0;    ///< of a send: when the message arrives, though the rank goes on at `start`
};

struct Simulation {
  std::vector<Step> steps;           ///< by start; a total order in which one process can run the plan
  std::vector<int> peak_live;        ///< per stage: micro-batches between forward and backward at one time
  double makespan = 0;               ///< seconds until the last rank is done
  std::vector<double> bubble_share;  ///< per rank: the part of the makespan in which it does not compute
};

/// Runs a lowered plan without computing anything. A rank does one thing at a time, sends take none of its
/// time, receives wait. Not modelled: sharing of a wire by several links, and slowdown of a computation by
/// a message beside it.
///
/// Throws what validate() throws, InputError on a deadlock (the message lists what each rank waits for),
/// and InputError when the cost model has the wrong number of entries or a negative one.
Simulation simulate(const Plan& plan, const CostModel& costs);

/// With a backward twice as long as a forward and messages that take no time.
Simulation simulate(const Plan& plan);

}  // namespace strait
