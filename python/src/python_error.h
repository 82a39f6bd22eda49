#pragma once

#include <memory>

#include "python/src/bind.h"
#include "strait/base/error.h"

namespace strait::python {

/// An exception of Python's on its way through the library, which other processes hear of in one line. In
/// Python it is again what it was, with its traceback.
class PythonError : public Error {
 public:
  /// The caller holds the GIL.
  explicit PythonError(py::error_already_set error);

  /// Makes it the exception that Python raises. The caller holds the GIL.
  void restore() const { original_->restore(); }

  /// Makes it the cause of one of that type, which Python raises; where it is no Exception, as
  /// KeyboardInterrupt is none, it is raised itself. The caller holds the GIL.
  void restore_as_cause(PyObject* type, const char* text) const;

 private:
  std::shared_ptr<py::error_already_set> original_;
};

/// Lets go of an object of Python's from a thread that may not hold the GIL.
struct WithGil {
  /// The deleter of a shared pointer.
  template <class Object>
  void operator()(Object* object) const {
    const py::gil_scoped_acquire gil;
    delete object;
  }
};

}  // namespace strait::python
