#pragma once

#include "strait/base/error.h"

namespace strait::python {

/// An argument is of a wrong type: TypeError in Python.
class WrongType : public Error {
  using Error::Error;
};

}  // namespace strait::python
