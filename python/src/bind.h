#pragma once

#include <torch/csrc/utils/pybind.h>

#include "strait/boundary/traffic.h"

namespace strait::python {

/// Python as C++ sees it.
namespace py = pybind11;

/// Lets other Python threads run while the function does.
using ReleaseGil = py::call_guard<py::gil_scoped_release>;

/// What has crossed, as Python counts it: messages, raw bytes, wire bytes.
inline py::tuple traffic_tuple(const Traffic& traffic) {
  return py::make_tuple(traffic.messages, traffic.raw_bytes, traffic.wire_bytes);
}

// Each adds its part to the module strait._C; each is a file of this folder.

/// WireError and NumericError, and what the library's other errors are in Python.
void bind_errors(py::module_& module);

/// Lists of codecs and feedback schemes with their properties, sizes of payloads.
void bind_codecs(py::module_& module);

/// LocalBoundary.
void bind_boundary(py::module_& module);

/// Pipeline and the group of processes that it spans.
void bind_pipeline(py::module_& module);

/// Sender and Receiver, the endpoints of a channel.
void bind_endpoints(py::module_& module);

/// BucketExchange.
void bind_ddp(py::module_& module);

/// What a run has left.
void bind_run(py::module_& module);

}  // namespace strait::python
