#include "python/src/errors.h"

#include <string>

#include "python/src/bind.h"
#include "python/src/python_error.h"
#include "strait/base/error.h"

namespace strait::python {
namespace {

PyObject* wire_error = nullptr;
PyObject* numeric_error = nullptr;

PyObject* new_exception(py::module_& module, const char* name, PyObject* base, const char* text) {
  const std::string full_name = std::string("strait.") + name;
  PyObject* type = PyErr_NewExceptionWithDoc(full_name.c_str(), text, base, nullptr);
  if (type == nullptr) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(type);
  return type;  // lives as long as the process, as the translator does
}

/// An error, of which an exception of Python's nested in it is the cause.
void raise_with_cause(PyObject* type, const Error& error) {
  try {
    std::rethrow_if_nested(error);
    PyErr_SetString(type, error.what());
  } catch (const PythonError& cause) {
    cause.restore_as_cause(type, error.what());
  } catch (...) {
    PyErr_SetString(type, error.what());
  }
}

/// strait's own: pybind asks it for torch's modules too, whose errors torch itself translates.
void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(std::move(thrown));
  } catch (const PythonError& error) {
    error.restore();
  } catch (const WrongType& error) {
    PyErr_SetString(PyExc_TypeError, error.what());
  } catch (const InputError& error) {
    raise_with_cause(PyExc_ValueError, error);
  } catch (const WireError& error) {
    PyErr_SetString(wire_error, error.what());
  } catch (const NumericError& error) {
    PyErr_SetString(numeric_error, error.what());
  } catch (const Error& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

}  // namespace

void bind_errors(py::module_& module) {
  wire_error =
      new_exception(module, "WireError", PyExc_ValueError,
                    "Bytes are not a payload that the codec can have written for a tensor of that shape.");
  numeric_error =
      new_exception(module, "NumericError", PyExc_ArithmeticError,
                    "A tensor holds a value that cannot be sent: not finite, or out of the codec's range.");
  py::register_exception_translator(&translate);
}

}  // namespace strait::python
