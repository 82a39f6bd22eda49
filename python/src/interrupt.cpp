#include "python/src/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace strait::python {
namespace {

constexpr unsigned char kEnd = 0;  // no signal's number

bool is_pythons_own_handler() {
  const py::module_ signal = py::module_::import("signal");
  return signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
}

int set_wakeup_fd(int descriptor) {
  return py::module_::import("signal")
      .attr("set_wakeup_fd")(descriptor, py::arg("warn_on_full_buffer") = false)
      .cast<int>();
}

bool is_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

InterruptWatch::InterruptWatch(Group& group) : group_(group) {
  if (!is_main_thread() || !is_pythons_own_handler()) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // out of descriptors: as without a watch
  read_end_ = ends[0];
  write_end_ = ends[1];
  fcntl(write_end_, F_SETFL, O_NONBLOCK);  // as Python asks of it
  former_ = set_wakeup_fd(write_end_);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatch::~InterruptWatch() {
  if (!thread_.joinable()) return;
  set_wakeup_fd(former_);
  const py::gil_scoped_release release;
  [[maybe_unused]] const ssize_t written = write(write_end_, &kEnd, 1);
  thread_.join();
  close(read_end_);
  close(write_end_);
}

void InterruptWatch::watch() {
  unsigned char number = 0;
  while (true) {
    const ssize_t got = read(read_end_, &number, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || number == kEnd) return;
    if (former_ >= 0) [[maybe_unused]]
      const ssize_t passed_on = write(former_, &number, 1);
    if (number == SIGINT) group_.fail({.rank = group_.rank(), .diverged = false, .reason = "interrupted"});
  }
}

void run_interruptibly(Group& group, const std::function<void()>& work) {
  if (group.size() == 1) {
    const py::gil_scoped_release release;
    return work();
  }
  const InterruptWatch watch(group);
  try {
    const py::gil_scoped_release release;
    work();
  } catch (const Error&) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    throw;
  }
}

}  // namespace strait::python
