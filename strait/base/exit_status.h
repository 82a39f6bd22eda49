#pragma once

namespace strait {

// The exit statuses of the program. Whoever starts it reads them: a sweep, and the launcher of several ranks.
constexpr int kDone = 0;        ///< it has done what was asked
constexpr int kFailed = 1;      ///< something went wrong while it ran
constexpr int kWrongInput = 2;  ///< the command line, a configuration or an input file is wrong
constexpr int kDiverged = 3;    ///< training has diverged
constexpr int kStopped = 130;   ///< by a signal, as shells count it

}  // namespace strait
