#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "strait/transport/group.h"

namespace strait {

/// What is known of a rank that has ended and told nobody why.
inline constexpr const char* kGoneReason = "it ended without a word";

/// Why the waits of a rank end that has left word, or has heard another's.
inline constexpr const char* kGivenUp = "this rank has given up";

/// Bytes of a reason that ranks tell each other; what is longer is cut off.
inline constexpr size_t kMaxReason = 2000;

/// What comes after a wait, up to the process's end, is to be within the timeout too.
inline std::chrono::milliseconds part_to_wait(std::chrono::milliseconds timeout) { return timeout * 2 / 3; }

/// `rank 3`, or `another rank` for -1.
std::string name_of_rank(int rank);

/// Throws for a wait that ended because a rank failed: PeerError that says `where` this rank waited, for which
/// peer (-1: any) and which rank failed first; NumericError where training diverged there.
[[noreturn]] void throw_failure(const Failure& failure, const std::string& where, int peer);

/// Throws PeerError for a wait in which the peer (-1: any) did not say a word.
[[noreturn]] void throw_silence(const std::string& where, int peer, std::chrono::milliseconds timeout);

}  // namespace strait
