// The extension module strait._C: objects with state, and what operators cannot say. The operators on tensors
// are torch.ops.strait.* (operators.cpp).

#include "python/src/bind.h"

PYBIND11_MODULE(_C, module) {
  strait::python::bind_errors(module);
  strait::python::bind_codecs(module);
  strait::python::bind_boundary(module);
  strait::python::bind_pipeline(module);
  strait::python::bind_endpoints(module);
  strait::python::bind_ddp(module);
  strait::python::bind_run(module);
}
