#include "python/src/python_error.h"

#include <string>

#include "strait/base/text.h"

namespace strait::python {
namespace {

/// `ValueError: what it says`, its first line.
std::string one_line(const py::error_already_set& error) {
  const std::string type = py::str(error.type().attr("__name__"));
  const std::string text = py::str(error.value());
  return text.empty() ? type : fmt::format("{}: {}", type, first_line(text));
}

}  // namespace

PythonError::PythonError(py::error_already_set error)
    : Error("{}", one_line(error)), original_(new py::error_already_set(std::move(error)), WithGil()) {}

void PythonError::restore_as_cause(PyObject* type, const char* text) const {
  const bool is_exception = original_->matches(PyExc_Exception);
  restore();
  if (is_exception) py::raise_from(type, text);
}

}  // namespace strait::python
