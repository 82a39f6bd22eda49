// strait.Pipeline: the library's Pipeline over modules of Python's.

#include <pybind11/stl.h>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "python/src/bind.h"
#include "python/src/interrupt.h"
#include "python/src/local_boundary.h"
#include "python/src/python_stage.h"
#include "python/src/state.h"
#include "strait/pipeline/pipeline.h"
#include "strait/transport/process_group.h"

namespace strait::python {
namespace {

/// Another pointer to an object that LibTorch counts, however Python holds it.
template <class Object>
c10::intrusive_ptr<Object> share(Object& object) {
  return c10::intrusive_ptr<Object>::unsafe_reclaim_from_nonowning(&object);
}

std::shared_ptr<Group> make_group(c10d::ProcessGroup& process_group, c10d::Store& store, double timeout) {
  JoinOptions options;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout * 1e3));
  return group_over(share(process_group), share(store), options);
}

/// A boundary as Python gives it: name, codecs, feedback of each direction, whether indices are reused.
using BoundaryArguments = std::tuple<std::string, std::string, std::string, Feedback, bool>;

Boundary boundary_of(const BoundaryArguments& arguments) {
  const auto& [name, activations, gradients, feedback, reuse] = arguments;
  const BoundaryLinks links = links_with(name, scheme_with(activations, gradients, feedback), reuse);
  return {name, links.activations, links.gradients};
}

/// A setup whose stages are Python's, and the names of extras that they share.
struct PythonSetup {
  PipelineSetup setup;
  ExtraNames extras = std::make_shared<std::vector<std::string>>();
};

/// What every stage is given by name.
using Extras = std::vector<std::pair<std::string, at::Tensor>>;

/// A pipeline, and state that is to be loaded when its shapes are known. Its face in Python sees to it that
/// calls come one at a time.
class PythonPipeline {
 public:
  PythonPipeline(PythonSetup setup, std::shared_ptr<Group> group)
      : group_(std::move(group)), extras_(std::move(setup.extras)) {
    run_interruptibly(*group_, [&] { pipeline_ = std::make_unique<Pipeline>(std::move(setup.setup), group_); });
  }
  ~PythonPipeline() {
    const py::gil_scoped_release release;  // threads end
    pipeline_.reset();
    group_.reset();
  }
  PythonPipeline(const PythonPipeline&) = delete;
  PythonPipeline& operator=(const PythonPipeline&) = delete;

  StepReport train(TensorList inputs, std::optional<at::Tensor> targets, std::vector<int64_t> ids,
                   std::vector<int64_t> classes, const Extras& extras) {
    return run({std::move(inputs), targets.value_or(at::Tensor()), std::move(ids), std::move(classes)}, extras,
               [&](const PipelineBatch& batch) { return pipeline_->train(batch); });
  }
  StepReport evaluate(TensorList inputs, std::optional<at::Tensor> targets, const std::string& mode,
                      const Extras& extras) {
    return run({std::move(inputs), targets.value_or(at::Tensor())}, extras,
               [&](const PipelineBatch& batch) { return pipeline_->evaluate(batch, mode_of(mode)); });
  }
  std::optional<TensorList> predict(TensorList inputs, const std::string& mode, const Extras& extras) {
    TensorList outputs;
    run({std::move(inputs)}, extras, [&](const PipelineBatch& batch) {
      outputs = pipeline_->predict(batch, mode_of(mode));
      return StepReport();
    });
    return outputs.empty() ? std::nullopt : std::optional(std::move(outputs));
  }
  double clip_grad_norm(double limit) {
    double norm = 0;
    run_interruptibly(*group_, [&] { norm = pipeline_->clip_grad_norm(limit); });
    return norm;
  }
  StepReport gather(const StepReport& mine) {
    StepReport all;
    run_interruptibly(*group_, [&] { all = pipeline_->gather(mine); });
    return all;
  }

  StateTensors state() {
    if (pending_) return pending_->links;
    return copy_state(links());
  }
  /// Where it throws, all is as before: InputError for the state of other links.
  void load_state(uint64_t step, StateTensors links) {
    const uint64_t step_before = pending_ ? pending_->step_before : pipeline_->step();
    pending_ = {std::move(links), step_before};
    pipeline_->set_step(step);
    if (!pipeline_->boundaries().empty()) load_pending();
  }

  Pipeline& pipeline() { return *pipeline_; }
  Group& group() { return *group_; }

 private:
  static constexpr const char* kWhat = "the pipeline";

  /// A state that waits for the links that it is of.
  struct Pending {
    StateTensors links;
    uint64_t step_before;  ///< of the pipeline, where the state proves to be of others
  };

  /// Does the work; the others hear of an error.
  template <class Work>
  auto heard(const Work& work) {
    try {
      return work();
    } catch (const std::exception& error) {
      group_->fail(failure_of(error, group_->rank()));
      throw;
    }
  }
  EvaluationMode mode_of(const std::string& name) {
    return heard([&] {
      const EvaluationMode mode = evaluation_mode(name);
      if (to_string(mode) != name || mode == EvaluationMode::live) {
        throw InputError("mode: expected off, plain or frozen, found \"{}\"", name);
      }
      return mode;
    });
  }
  StepReport run(PipelineBatch batch, const Extras& extras,
                 const std::function<StepReport(const PipelineBatch& batch)>& work) {
    extras_->clear();
    for (const auto& [name, tensor] : extras) {
      extras_->push_back(name);
      batch.extras.push_back(tensor);
    }
    StepReport report;
    run_interruptibly(*group_, [&] {
      heard([&] {
        if (!pending_) return;
        pipeline_->prepare(batch.inputs, batch.rows(), batch.extras);
        load_pending();
      });
      report = work(batch);
    });
    return report;
  }
  VisitState links() {
    return [this](StateVisitor& visitor) { pipeline_->visit_state(visitor); };
  }
  void load_pending() {
    Pending loaded = std::move(pending_).value();
    pending_.reset();
    StateTensors before = copy_state(links());
    try {
      put_state(std::move(loaded.links), kWhat, links());
    } catch (const InputError&) {
      put_state(std::move(before), kWhat, links());
      pipeline_->set_step(loaded.step_before);
      throw;
    }
  }

  std::shared_ptr<Group> group_;
  ExtraNames extras_;  ///< of the present batch
  std::unique_ptr<Pipeline> pipeline_;
  std::optional<Pending> pending_;
};

PythonSetup make_setup(const py::list& stages, const std::vector<ArgumentNames>& arguments,
                       const std::vector<BoundaryArguments>& boundaries, const py::object& loss,
                       const py::object& correct, const py::object& count, const std::string& schedule,
                       int micro_batches, int64_t batch_size, int replicas,
                       const std::pair<std::string, std::string>& replica_link, int64_t seed,
                       const at::Device& device) {
  PythonSetup made;
  PipelineSetup& setup = made.setup;
  for (size_t i = 0; i < stages.size(); ++i)
    setup.stages.push_back(stage_of(stages[i], arguments.at(i), made.extras));
  for (const auto& boundary : boundaries) setup.boundaries.push_back(boundary_of(boundary));
  setup.loss = loss_of(loss, correct, count);
  setup.schedule = Schedule(schedule);
  setup.micro_batches = micro_batches;
  setup.batch_size = batch_size;
  setup.replicas = replicas;
  setup.replica_link = make_link(replica_link.first, replica_link.second);
  setup.seed = static_cast<uint64_t>(seed);
  setup.device = device;
  return made;
}

std::unique_ptr<PythonPipeline> make_pipeline(PythonSetup setup, std::shared_ptr<Group> group) {
  if (!group) group = std::make_shared<SingleProcessGroup>();
  return std::make_unique<PythonPipeline>(std::move(setup), std::move(group));
}

/// The others hear of it, where this process cannot go on.
void fail(Group& group, const std::string& reason) {
  group.fail({.rank = group.rank(), .diverged = false, .reason = reason});
}

/// `StepResult(loss=0.6931, rows=32, ...)`.
std::string result_text(const StepReport& report) {
  return fmt::format(
      "StepResult(loss={}, rows={}, correct={}, seconds={:.4g}, messages={}, raw_bytes={}, wire_bytes={})",
      report.loss ? fmt::format("{:.6g}", *report.loss) : "None", report.rows, report.correct, report.seconds,
      report.traffic.messages, report.traffic.raw_bytes, report.traffic.wire_bytes);
}

}  // namespace

void bind_pipeline(py::module_& module) {
  py::class_<Group, std::shared_ptr<Group>>(module, "Group")
      .def_property_readonly("rank", &Group::rank)
      .def_property_readonly("size", &Group::size)
      .def("fail", &fail, py::arg("reason"), ReleaseGil());
  module.def("group_over", &make_group, py::arg("process_group"), py::arg("store"), py::arg("timeout"),
             ReleaseGil());

  py::class_<StepReport>(module, "StepResult",
                         "What a batch came to, as far as this process knows; Pipeline.gather() knows more.")
      .def_readonly(
          "loss", &StepReport::loss,
          "mean over the rows, or what the loss counts; None where the last stage is in another process")
      .def_readonly("rows", &StepReport::rows, "of the batch")
      .def_readonly("correct", &StepReport::correct, "what `correct` counted, in the process of the last stage")
      .def_readonly("seconds", &StepReport::seconds, "in the call")
      .def("__repr__", &result_text)
      .def(py::pickle(
          [](const StepReport& report) {
            const Traffic& sent = report.traffic;
            return py::make_tuple(report.loss, report.rows, report.correct, report.seconds, sent.messages,
                                  sent.raw_bytes, sent.wire_bytes, sent.encode_seconds, sent.decode_seconds);
          },
          [](const py::tuple& state) {
            StepReport report;
            report.loss = state[0].cast<std::optional<double>>();
            report.rows = state[1].cast<int64_t>();
            report.correct = state[2].cast<int64_t>();
            report.seconds = state[3].cast<double>();
            report.traffic = {.messages = state[4].cast<uint64_t>(),
                              .raw_bytes = state[5].cast<uint64_t>(),
                              .wire_bytes = state[6].cast<uint64_t>(),
                              .encode_seconds = state[7].cast<double>(),
                              .decode_seconds = state[8].cast<double>()};
            return report;
          }))
      .def_property_readonly("messages", [](const StepReport& report) { return report.traffic.messages; })
      .def_property_readonly("raw_bytes", [](const StepReport& report) { return report.traffic.raw_bytes; })
      .def_property_readonly("wire_bytes", [](const StepReport& report) { return report.traffic.wire_bytes; })
      .def_property_readonly("encode_seconds",
                             [](const StepReport& report) { return report.traffic.encode_seconds; })
      .def_property_readonly("decode_seconds",
                             [](const StepReport& report) { return report.traffic.decode_seconds; });

  py::class_<PythonSetup>(module, "PipelineSetup")
      .def(py::init(&make_setup), py::arg("stages"), py::arg("arguments"), py::arg("boundaries"),
           py::arg("loss"), py::arg("correct"), py::arg("count"), py::arg("schedule"), py::arg("micro_batches"),
           py::arg("batch_size"), py::arg("replicas"), py::arg("replica_link"), py::arg("seed"),
           py::arg("device"));
  py::class_<PythonPipeline>(module, "Pipeline")
      .def(py::init(&make_pipeline), py::arg("setup"), py::arg("group"))
      .def("train", &PythonPipeline::train)
      .def("evaluate", &PythonPipeline::evaluate)
      .def("predict", &PythonPipeline::predict)
      .def("clip_grad_norm", &PythonPipeline::clip_grad_norm)
      .def("gather", &PythonPipeline::gather)
      .def("state", &PythonPipeline::state)
      .def("load_state", &PythonPipeline::load_state)
      .def("runs", [](PythonPipeline& self, int stage) { return self.pipeline().runs(stage); })
      .def("compress", [](PythonPipeline& self, bool on) { self.pipeline().compress(on); })
      .def("parameters_changed", [](PythonPipeline& self) { self.pipeline().parameters_changed(); })
      .def("prefetch",
           [](PythonPipeline& self, std::vector<int64_t> ids) { self.pipeline().prefetch(std::move(ids)); })
      .def_property(
          "step", [](PythonPipeline& self) { return self.pipeline().step(); },
          [](PythonPipeline& self, uint64_t step) { self.pipeline().set_step(step); })
      .def_property_readonly("rank", [](PythonPipeline& self) { return self.group().rank(); })
      .def_property_readonly("replica", [](PythonPipeline& self) { return self.pipeline().replica(); });
}

}  // namespace strait::python
