// strait._C.LocalBoundary, over which strait.Boundary is a module.

#include <pybind11/stl.h>

#include <tuple>

#include "python/src/bind.h"
#include "python/src/local_boundary.h"

namespace strait::python {
namespace {

using Pair = std::pair<std::string, std::string>;

EvaluationMode mode_of(const std::string& name) {
  const EvaluationMode mode = evaluation_mode(name);
  if (to_string(mode) != name || mode == EvaluationMode::live) {
    throw InputError("evaluation: expected off, plain or frozen, found \"{}\"", name);
  }
  return mode;
}

int64_t in_range(const char* name, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return value;
  throw InputError("{}: expected a number from {} to {}, found {}", name, least, most, value);
}

std::unique_ptr<LocalBoundary> make(const std::string& activations, const std::string& gradients,
                                    const Feedback& feedback, bool reuse_indices, const std::string& evaluation,
                                    const std::string& name, int64_t index, int64_t seed,
                                    std::optional<int64_t> slots) {
  BoundaryForm form;
  form.scheme = scheme_with(activations, gradients, feedback);
  form.reuse_indices = reuse_indices;
  form.evaluation = mode_of(evaluation);
  form.name = name;
  form.index = static_cast<uint16_t>(in_range("index", index, 0, UINT16_MAX));
  form.seed = static_cast<uint64_t>(seed);
  if (slots) form.slots = in_range("slots", *slots, 1, INT64_MAX);
  return std::make_unique<LocalBoundary>(std::move(form));
}

/// Of traffic_tuple(); the tuples of pickles from before have seconds behind these three numbers.
Traffic traffic_of(const py::tuple& numbers) {
  return {.messages = numbers[0].cast<uint64_t>(),
          .raw_bytes = numbers[1].cast<uint64_t>(),
          .wire_bytes = numbers[2].cast<uint64_t>()};
}

py::dict form_of(const LocalBoundary& boundary) {
  const BoundaryForm& form = boundary.form();
  py::dict all;
  all["activations"] = form.scheme.activations.codec;
  all["gradients"] = form.scheme.gradients.codec;
  all["feedback"] = Pair(form.scheme.activations.feedback, form.scheme.gradients.feedback);
  all["reuse_indices"] = form.reuse_indices;
  all["evaluation"] = std::string(to_string(form.evaluation));
  all["name"] = form.name;
  all["index"] = form.index;
  all["seed"] = static_cast<int64_t>(form.seed);
  all["slots"] = form.slots;
  return all;
}

/// Does the work while others may have the interpreter: a message under way, which the boundary waits for, may
/// ask for it.
template <class Work>
auto without_gil(const Work& work) {
  const py::gil_scoped_release released;
  return work();
}

py::tuple pickled(LocalBoundary& boundary) {
  const auto [state, step, compresses, traffic] = without_gil(
      [&] { return std::tuple(boundary.state(), boundary.step(), boundary.compresses(), boundary.traffic()); });
  return py::make_tuple(form_of(boundary), state, step, compresses, traffic_tuple(traffic.forward),
                        traffic_tuple(traffic.backward));
}

std::unique_ptr<LocalBoundary> unpickled(const py::tuple& all) {
  const auto form = all[0].cast<py::dict>();
  auto boundary = make(form["activations"].cast<std::string>(), form["gradients"].cast<std::string>(),
                       form["feedback"].cast<Pair>(), form["reuse_indices"].cast<bool>(),
                       form["evaluation"].cast<std::string>(), form["name"].cast<std::string>(),
                       form["index"].cast<int64_t>(), form["seed"].cast<int64_t>(),
                       form["slots"].cast<std::optional<int64_t>>());
  boundary->load_state(all[1].cast<StateTensors>());
  boundary->set_step(all[2].cast<uint64_t>());
  boundary->compress(all[3].cast<bool>());
  boundary->set_traffic({traffic_of(all[4]), traffic_of(all[5])});
  return boundary;
}

void begin_batch(LocalBoundary& boundary, std::optional<int64_t> step, int64_t first_row,
                 std::vector<int64_t> ids, std::vector<int64_t> classes, const std::vector<int64_t>& next_ids) {
  BatchPlace place;
  if (step) place.step = static_cast<uint64_t>(in_range("step", *step, 0, INT64_MAX));
  place.first_row = static_cast<uint64_t>(in_range("first_row", first_row, 0, INT64_MAX));
  place.ids = std::move(ids);
  place.classes = std::move(classes);
  boundary.begin_batch(std::move(place), next_ids);
}

}  // namespace

void bind_boundary(py::module_& module) {
  py::class_<Crossing, std::shared_ptr<Crossing>>(module, "Crossing");
  py::class_<LocalBoundary>(module, "LocalBoundary")
      .def(py::init(&make), py::arg("activations"), py::arg("gradients"), py::arg("feedback"),
           py::arg("reuse_indices"), py::arg("evaluation"), py::arg("name"), py::arg("index"), py::arg("seed"),
           py::arg("slots"))
      .def(py::pickle(&pickled, &unpickled))
      .def("form", &form_of)
      .def("forward", &LocalBoundary::forward, py::arg("x"), py::arg("training"), ReleaseGil())
      .def("backward", &LocalBoundary::backward, py::arg("crossing"), py::arg("gradient"), ReleaseGil())
      .def("begin_batch", &begin_batch, py::arg("step"), py::arg("first_row"), py::arg("ids"),
           py::arg("classes"), py::arg("next_ids"), ReleaseGil())
      .def("end_batch", &LocalBoundary::end_batch, ReleaseGil())
      .def("set_place", &LocalBoundary::set_place, py::arg("index"), py::arg("name"), ReleaseGil())
      .def("state", &LocalBoundary::state, ReleaseGil())
      .def("load_state", &LocalBoundary::load_state, py::arg("state"), ReleaseGil())
      .def("traffic",
           [](LocalBoundary& boundary) {
             const CrossedTraffic traffic = without_gil([&] { return boundary.traffic(); });
             return py::make_tuple(traffic_tuple(traffic.forward), traffic_tuple(traffic.backward));
           })
      .def(
          "reset_traffic", [](LocalBoundary& boundary) { boundary.set_traffic({}); }, ReleaseGil())
      .def_property("compressed", py::cpp_function(&LocalBoundary::compresses, ReleaseGil()),
                    py::cpp_function(&LocalBoundary::compress, ReleaseGil()))
      .def_property("step", py::cpp_function(&LocalBoundary::step, ReleaseGil()),
                    [](LocalBoundary& boundary, int64_t step) {
                      const auto number = static_cast<uint64_t>(in_range("step", step, 0, INT64_MAX));
                      without_gil([&] { boundary.set_step(number); });
                    });
}

}  // namespace strait::python
