#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace strait {

/// The cores that this thread may run on (its CPU affinity), ascending. Never empty. Throws Error when the
/// kernel does not say, as on a machine of more than 1024 cores.
std::vector<int> available_cores();

/// Part `index` of `count`: the parts hold every core once, and their sizes differ by one at most.
/// `count` must not be 0 and `index` must be less. Which cores share a cache or a floating-point unit is
/// not looked at.
std::vector<int> share_of(std::span<const int> cores, size_t index, size_t count);

/// How many of available_cores() this process can keep busy: fewer than there are where its control group has a
/// quota of processor time. At least 1.
int usable_cores();

/// The quota in cores of a process whose /proc/self/cgroup says `groups`, of the control groups below `root`
/// (/sys/fs/cgroup): the smallest of the group and those above it, in either version of the interface. Infinite
/// where there is none.
double core_quota(const std::filesystem::path& root, std::string_view groups);

/// How many of the machine's cores the work of others takes, from the text of /proc/loadavg: the load average
/// of the last minute, but no more than run at this moment besides `own` processes, so that work that has just
/// ended does not count. 0 where the text cannot be read.
double load_of_others(std::string_view loadavg, int own);

/// The same at this moment, of usable_cores() where it is spread evenly over the machine. 0 where the affinity
/// leaves cores out: nothing says how busy the others are.
double load_of_others(int own);

}  // namespace strait
