#include <pybind11/stl.h>

#include "python/src/bind.h"
#include "python/src/tensors.h"
#include "strait/codecs/codec.h"
#include "strait/links/link.h"

namespace strait::python {
namespace {

py::list codec_rows() {
  py::list rows;
  for (const CodecInfo& info : codec_list()) {
    py::list samples;
    for (const auto sample : info.samples) samples.append(py::str(std::string(sample)));
    rows.append(py::make_tuple(std::string(info.name), std::string(info.parameters), samples));
  }
  return rows;
}

py::tuple codec_properties(const std::string& spec) {
  const auto codec = make_codec(spec);
  return py::make_tuple(codec->is_row_wise(), codec->sparsifier() != nullptr);
}

std::pair<size_t, bool> payload_size(const std::string& spec, const std::vector<int64_t>& shape) {
  const PayloadSize size = make_codec(spec)->payload_size(meta_of_shape(shape));
  return {size.bound, size.exact};
}

const char* name_of(Slots slots) {
  switch (slots) {
    case Slots::none:
      return "none";
    case Slots::rows:
      return "rows";
    case Slots::samples:
      return "samples";
    case Slots::classes:
      return "classes";
  }
  throw InternalError("slots");
}

bool serves_any_codec(const std::string& feedback) {
  try {
    make_link(kUncompressed, feedback);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

py::list feedback_rows() {
  py::list rows;
  for (const LinkInfo& info : link_list()) {
    const std::string sample(info.samples.front());
    const auto link = make_link(codec_for_any_link(), sample);
    rows.append(py::make_tuple(std::string(info.name), name_of(link->slots()), serves_any_codec(sample),
                               link->serves_gradients(), !link->needs_previous()));
  }
  return rows;
}

}  // namespace

void bind_codecs(py::module_& module) {
  module.def("codecs", &codec_rows);
  module.def("codec_properties", &codec_properties, py::arg("codec"));
  module.def("payload_size", &payload_size, py::arg("codec"), py::arg("shape"));
  module.def("feedbacks", &feedback_rows);
}

}  // namespace strait::python
