#pragma once

namespace strait {

/// From now on the first SIGINT or SIGTERM asks the work to stop in order; the second ends the program.
void catch_stop_signals();

/// Whether one has come.
bool stop_requested();

}  // namespace strait
