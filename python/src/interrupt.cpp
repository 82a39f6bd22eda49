#include "python/src/interrupt.h"

#include <fcntl.h>
#include <torch/csrc/Exceptions.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "python/src/python_error.h"

namespace strait::python {
namespace {

constexpr unsigned char kEnd = 0;  // no signal's number

bool is_pythons_own_handler() {
  const py::module_ signal = py::module_::import("signal");
  return signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
}

bool is_main_thread() {
  const py::module_ threading = py::module_::import("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

/// Runs it without the GIL. What Python code raises in a backward pass comes as a PythonError, and is not left
/// set in the thread, as autograd leaves it.
void run_without_gil(const std::function<void()>& work) {
  try {
    const py::gil_scoped_release release;
    work();
  } catch (python_error& error) {
    error.restore();
    throw PythonError(py::error_already_set());
  }
}

}  // namespace

InterruptWatch::InterruptWatch(Group& group) : group_(group) {
  if (!is_main_thread() || !is_pythons_own_handler()) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // out of descriptors: as without a watch
  read_end_ = ends[0];
  write_end_ = ends[1];
  fcntl(write_end_, F_SETFL, O_NONBLOCK);  // as Python asks of it
  set_wakeup_fd_ = py::module_::import("signal").attr("set_wakeup_fd");
  former_ = write_numbers_to(write_end_);
  thread_ = std::thread([this] { watch(); });
}

InterruptWatch::~InterruptWatch() {
  if (!thread_.joinable()) return;
  {
    const py::error_scope raised;  // perhaps, with which Python calls nothing
    try {
      write_numbers_to(former_);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("strait: the end of a watch for Ctrl-C");
    }
  }
  const py::gil_scoped_release release;
  [[maybe_unused]] const ssize_t written = write(write_end_, &kEnd, 1);
  thread_.join();
  close(read_end_);
  close(write_end_);
}

int InterruptWatch::write_numbers_to(int descriptor) {
  return set_wakeup_fd_(descriptor, py::arg("warn_on_full_buffer") = false).cast<int>();
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
  if (group.size() == 1) return run_without_gil(work);
  const InterruptWatch watch(group);
  try {
    run_without_gil(work);
  } catch (const Error&) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    throw;
  }
}

}  // namespace strait::python
