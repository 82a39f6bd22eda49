#pragma once

#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "strait/transport/group.h"
#include "strait/transport/join_group.h"

namespace strait {

/// A group over a process group that is there already, such as that of
/// torch.distributed.init_process_group("gloo"). Collective: all ranks of the process group call it, and
/// several times in the same order. The ranks compare wire version, code version and `options.settings`;
/// `options.timeout` bounds this and every later wait, and `options.waiting` is not called.
///
/// Everything goes from rank to rank over the Gloo that the process group has for tensors of the CPU, with tags
/// from 2^30 on: sends and receives of one's own are to stay below, and collectives do not disturb and are not
/// disturbed. `store` is any store that all ranks share; the group's keys begin with `strait/` and the group's
/// number, so that several groups can follow one another.
///
/// The connections belong to the process group, so that a rank which fails cannot close them. Group::fail()
/// leaves word in the store, where each rank looks ten times a second while it waits, and so ends every wait of
/// all ranks. After a failure, or a wait that timed out, messages may be left over: the process group is of no
/// use for others. A rank that dies is noticed by those that wait for it; these are to call fail() for the
/// others to hear, as Pipeline does.
///
/// Throws InputError for a process group without Gloo, and what Group's members throw.
std::shared_ptr<Group> group_over(const c10::intrusive_ptr<c10d::ProcessGroup>& process_group,
                                  c10::intrusive_ptr<c10d::Store> store, const JoinOptions& options = {});

}  // namespace strait
