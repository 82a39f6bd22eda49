#pragma once

namespace strait::cli {

/// The exit statuses of the command, which a sweep reads from the runs that it starts as well.
enum ExitStatus {
  kDone = 0,
  kFailed = 1,
  kWrongInput = 2,
  kDiverged = 3,
  kStopped = 130,  ///< by a signal, as shells count it
};

}  // namespace strait::cli
