// strait._C.BucketExchange, over which strait.ddp_hook is a communication hook.

#include <pybind11/stl.h>

#include "python/src/bind.h"
#include "python/src/bucket_exchange.h"

namespace strait::python {

void bind_ddp(py::module_& module) {
  py::class_<BucketExchange>(module, "BucketExchange")
      .def(py::init([](const std::string& codec, const std::string& feedback, int rank, int ranks,
                       int64_t seed) {
             return std::make_unique<BucketExchange>(codec, feedback, rank, ranks, static_cast<uint64_t>(seed));
           }),
           py::arg("codec"), py::arg("feedback"), py::arg("rank"), py::arg("ranks"), py::arg("seed"))
      .def("encode", &BucketExchange::encode, py::arg("bucket"), py::arg("gradient"), py::arg("step"),
           ReleaseGil())
      .def("decode", &BucketExchange::decode, py::arg("bucket"), py::arg("messages"), py::arg("step"),
           ReleaseGil())
      .def("state", &BucketExchange::state, ReleaseGil())
      .def("load_state", &BucketExchange::load_state, py::arg("state"), ReleaseGil())
      .def("traffic", [](BucketExchange& exchange) {
        const Traffic traffic = exchange.traffic();
        return py::make_tuple(traffic.messages, traffic.raw_bytes, traffic.wire_bytes, traffic.encode_seconds,
                              traffic.decode_seconds);
      });
}

}  // namespace strait::python
