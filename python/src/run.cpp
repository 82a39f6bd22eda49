// What a run has left in its folder, read and checked by the library.

#include <pybind11/stl.h>

#include "python/src/bind.h"
#include "strait/base/files.h"
#include "strait/formats/safetensors.h"
#include "strait/formats/toml.h"
#include "strait/run/metrics_json.h"
#include "strait/run/reader.h"
#include "strait/run/status.h"

namespace strait::python {
namespace {

py::object object_of(const TomlNode& node);

py::dict object_of(const TomlTable& table) {
  py::dict all;
  for (const auto& [key, value] : table) all[py::str(key)] = object_of(value);
  return all;
}

py::object object_of(const TomlNode& node) {
  if (const auto* table = node.get<TomlTable>()) return object_of(*table);
  if (const auto* array = node.get<TomlNode::Array>()) {
    py::list all;
    for (const auto& item : *array) all.append(object_of(item));
    return all;
  }
  if (const auto* text = node.get<std::string>()) return py::str(*text);
  if (const auto* number = node.get<int64_t>()) return py::int_(*number);
  if (const auto* number = node.get<double>()) return py::float_(*number);
  if (const auto* truth = node.get<bool>()) return py::bool_(*truth);
  return py::none();  // a date, which no key takes
}

std::string read_status(const std::string& path) {
  std::string text = read_whole(path, kJsonBytesMost);
  parse_status(text, path);
  return text;
}

std::vector<std::string> read_metrics(const std::string& path, bool is_done) {
  std::vector<std::string> lines;
  for (const EpochMetrics& epoch : parse_epochs(read_whole(path, kMetricsBytesMost), path, is_done)) {
    lines.push_back(to_line(epoch));
  }
  return lines;
}

}  // namespace

void bind_run(py::module_& module) {
  module.def(
      "read_config", [](const std::string& path) { return object_of(read_toml(path)); }, py::arg("path"));
  module.def("read_status", &read_status, py::arg("path"), ReleaseGil());
  module.def("read_metrics", &read_metrics, py::arg("path"), py::arg("is_done"), ReleaseGil());
  module.def(
      "read_tensors", [](const std::string& path) { return read_safetensors(path).tensors; }, py::arg("path"),
      ReleaseGil());
}

}  // namespace strait::python
