#pragma once

namespace strait {

/// From now on the first SIGINT, SIGTERM or SIGHUP asks the work to stop in order; the second, of any of the
/// three, ends the program.
void catch_stop_signals();

/// Whether one has come.
bool stop_requested();

}  // namespace strait
