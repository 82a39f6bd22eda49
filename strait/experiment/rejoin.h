#pragma once

#include <functional>
#include <memory>
#include <string>

#include "strait/config/config.h"
#include "strait/experiment/run.h"
#include "strait/transport/join_group.h"
#include "strait/transport/membership.h"

namespace strait {

/// What one of the processes does together with the others, once they have met. It calls `begun` where
/// run_experiment() does.
using TrainTogether =
    std::function<RunOutcome(std::shared_ptr<Group> group, Start start, const std::function<void()>& begun)>;

/// Meets the others (join_training()) and trains with them. Where pipeline.rejoin is above 0 and another
/// process is lost, meets those who are left and the one that takes its rank, for so long, and trains on, with
/// Start::resume where training had begun. A process that finds its rank taken waits for it to be free, however
/// long that takes. All use Start::resume when one does. Wrong input of another ends this process too. `note`
/// gets a line for people when something of the kind happens.
RunOutcome train_with_others(const Config& config, const Membership& membership, const std::string& flags,
                             Start start, const WaitingFor& waiting,
                             const std::function<void(const std::string&)>& note, const TrainTogether& train);

}  // namespace strait
