#pragma once

#include <functional>
#include <memory>

#include "strait/doctor/diagnosis.h"
#include "strait/transport/join_group.h"

namespace strait {

/// Joins the processes that are to train the configuration, over Carrier::tcp, to be examined. Unlike training
/// it takes ranks of other versions and configurations in, as long as they can speak with each other. Throws
/// InputError when there is not one process for each stage, Error when another one is not here to be examined,
/// or has a version with which that is not possible, and what join_group() throws.
std::shared_ptr<Group> join_examination(const Config& config, const Membership& membership, double seconds,
                                        const WaitingFor& waiting);

/// Called on every rank with what is known of a pair once it has been measured.
using OnPair = std::function<void(const Diagnosis& so_far, const PairReport& pair)>;

/// What there is to find out about the ranks of a group that is to train the configuration. Collective. Pairs
/// that exchange much are measured one after the other, for about `seconds` each way, while all others are
/// silent. Which these are is what rank 0's configuration says. Throws Error when a rank does not answer.
Diagnosis examine(Group& group, const Config& config, const RankFacts& mine, double seconds,
                  const OnPair& on_pair);

}  // namespace strait
