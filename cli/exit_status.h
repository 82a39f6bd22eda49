#pragma once

namespace strait::cli {

// The exit statuses of the command, which a sweep reads from the runs that it starts as well.
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongInput = 2;
constexpr int kDiverged = 3;
constexpr int kStopped = 130;  ///< by a signal, as shells count it

}  // namespace strait::cli
