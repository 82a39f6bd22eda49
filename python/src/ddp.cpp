// strait._C.BucketExchange, over which strait.ddp_hook is a communication hook.

#include <ATen/ThreadLocalState.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/stack.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <pybind11/stl.h>

#include <atomic>
#include <exception>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <torch/csrc/jit/python/pybind_utils.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "python/src/bind.h"
#include "python/src/bucket_exchange.h"
#include "python/src/tensors.h"
#include "strait/base/workers.h"

namespace strait::python {
namespace {

/// A bucket on its way between the ranks.
struct BucketUnderWay {
  BucketUnderWay(at::Tensor gradients, const py::object& same)
      : buffer(std::move(gradients)),
        value(torch::jit::toIValue(same, c10::PyObjectType::get())),
        mean(c10::make_intrusive<c10::ivalue::Future>(c10::PyObjectType::get())) {}

  at::Tensor buffer;                              ///< DistributedDataParallel's, where the mean goes
  c10::IValue value;                              ///< the buffer again, as an object of Python's
  c10::intrusive_ptr<c10::ivalue::Future> mean;   ///< its value is `value`
  c10::intrusive_ptr<c10d::Work> work;            ///< the collective
  std::vector<at::Tensor> sent;                   ///< what the collective works on
  std::vector<std::vector<at::Tensor>> arriving;  ///< likewise
  std::atomic<bool> is_done = false;              ///< nobody but the owner uses it any more
};

/// A BucketExchange whose messages travel, and are decoded, while the backward pass goes on.
///
/// A process group may be destroyed, and its threads joined, by a thread that holds the GIL. So those threads
/// must never need it: nothing that they hold is an object of Python's, not even in the thread-local state that
/// a collective takes along, and no callback runs in them. The thread of this class needs the GIL neither: what
/// is done stays until the owner clears it.
class PythonBucketExchange : public BucketExchange {
 public:
  PythonBucketExchange(const std::string& codec, const std::string& feedback, int rank, int ranks,
                       uint64_t seed)
      : BucketExchange(codec, feedback, rank, ranks, seed) {
    workers_->post(0, [this] { without_python_.emplace(); });
    workers_->wait();
  }

  /// The caller holds the GIL.
  ~PythonBucketExchange() {
    const py::gil_scoped_release release;
    workers_.reset();
  }
  PythonBucketExchange(const PythonBucketExchange&) = delete;
  PythonBucketExchange& operator=(const PythonBucketExchange&) = delete;

  /// The mean of a bucket over the ranks, in the place of its gradients [elements], when it has come: a
  /// torch.futures.Future, with the error of decode() or of the process group where none comes.
  py::object mean(c10d::ProcessGroup& group, int64_t bucket, const py::object& gradients, uint64_t step,
                  bool compressed) {
    under_way_.remove_if([](const BucketUnderWay& each) { return each.is_done.load(); });
    const auto place = under_way_.emplace(under_way_.end(), gradients.cast<at::Tensor>(), gradients);
    BucketUnderWay& one = *place;
    try {
      const py::gil_scoped_release release;
      const at::ThreadLocalStateGuard guard(*without_python_);
      const at::NoGradGuard no_grad;
      compressed ? send(one, group, bucket, step) : add_up(one, group);
      workers_->post(0, [this, &one, bucket, step, compressed] { end(one, bucket, step, compressed); });
    } catch (...) {
      under_way_.erase(place);
      throw;
    }
    return torch::jit::toPyObject(one.mean);
  }

 private:
  void send(BucketUnderWay& one, c10d::ProcessGroup& group, int64_t bucket, uint64_t step) {
    one.sent = {encode(bucket, one.buffer, step).to(one.buffer.device())};
    one.arriving.resize(1);
    for (int i = 0; i < group.getSize(); ++i) one.arriving[0].push_back(at::empty_like(one.sent[0]));
    one.work = group.allgather(one.arriving, one.sent);
  }
  static void add_up(BucketUnderWay& one, c10d::ProcessGroup& group) {
    one.sent = {one.buffer.div(group.getSize())};
    one.work = group.allreduce(one.sent);
  }
  /// Whoever waits for the mean reads it on a stream of his own, which knows nothing of this thread's.
  static void wait_for_device(const at::Tensor& tensor) {
    if (tensor.is_cpu()) return;
    c10::impl::VirtualGuardImpl(tensor.device().type()).getStream(tensor.device()).synchronize();
  }
  void end(BucketUnderWay& one, int64_t bucket, uint64_t step, bool compressed) {
    const at::NoGradGuard no_grad;
    try {
      one.work->wait();
      one.buffer.copy_(compressed ? narrowed(decode(bucket, at::stack(one.arriving[0]), step),
                                             one.buffer.scalar_type(), "gradients")
                                  : one.sent[0]);
      wait_for_device(one.buffer);
      // Without a list of its storages the future would look for them in Python.
      one.mean->markCompleted(one.value, std::vector<c10::ivalue::Future::WeakStorage>());
    } catch (...) {
      one.mean->setErrorIfNeeded(std::current_exception());
    }
    one.work.reset();
    one.sent.clear();
    one.arriving.clear();
    one.is_done = true;
  }

  std::list<BucketUnderWay> under_way_;
  std::unique_ptr<Workers> workers_ = std::make_unique<Workers>(1);
  std::optional<at::ThreadLocalState> without_python_;
};

}  // namespace

void bind_ddp(py::module_& module) {
  py::class_<PythonBucketExchange>(module, "BucketExchange")
      .def(py::init(
               [](const std::string& codec, const std::string& feedback, int rank, int ranks, int64_t seed) {
                 return std::make_unique<PythonBucketExchange>(codec, feedback, rank, ranks,
                                                               static_cast<uint64_t>(seed));
               }),
           py::arg("codec"), py::arg("feedback"), py::arg("rank"), py::arg("ranks"), py::arg("seed"))
      .def("mean", &PythonBucketExchange::mean, py::arg("group"), py::arg("bucket"), py::arg("gradients"),
           py::arg("step"), py::arg("compressed"))
      .def("encode", &PythonBucketExchange::encode, py::arg("bucket"), py::arg("gradient"), py::arg("step"),
           ReleaseGil())
      .def("decode", &PythonBucketExchange::decode, py::arg("bucket"), py::arg("messages"), py::arg("step"),
           ReleaseGil())
      .def("forget", &PythonBucketExchange::forget, py::arg("bucket"), ReleaseGil())
      .def("state", &PythonBucketExchange::state, ReleaseGil())
      .def("load_state", &PythonBucketExchange::load_state, py::arg("state"), ReleaseGil())
      .def("traffic", [](PythonBucketExchange& exchange) { return traffic_tuple(exchange.traffic()); });
}

}  // namespace strait::python
