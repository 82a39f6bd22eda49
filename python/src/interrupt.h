#pragma once

#include <thread>

#include "python/src/bind.h"
#include "strait/transport/group.h"

namespace strait::python {

/// While it lives, Ctrl-C ends what this process waits for from others, and tells them: the main thread is in
/// the library then, and Python cannot raise KeyboardInterrupt before it is back. In another thread than the
/// main one, and where a program has a handler of its own for the signal, it does nothing. Made and destroyed
/// with the GIL held.
class InterruptWatch {
 public:
  explicit InterruptWatch(Group& group);
  ~InterruptWatch();
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  /// Where Python's own handler is to write the numbers of signals; gives where it wrote them before. A call of
  /// a built-in function, in which no signal is raised as an exception.
  int write_numbers_to(int descriptor);
  void watch();

  Group& group_;
  py::object set_wakeup_fd_;  ///< signal.set_wakeup_fd
  int read_end_ = -1;         ///< of a pipe to which Python's own handler writes the numbers of signals
  int write_end_ = -1;        ///< its other end
  int former_ = -1;           ///< where Python wrote them before
  std::thread thread_;
};

/// Runs `work` without the GIL, under an InterruptWatch where there are other processes. Raises
/// KeyboardInterrupt in place of the error that the watch brought about, and PythonError in place of what
/// autograd throws where Python code raised an exception in a backward pass. The caller holds the GIL.
void run_interruptibly(Group& group, const std::function<void()>& work);

}  // namespace strait::python
