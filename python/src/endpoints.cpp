// The two endpoints of a channel for strait.pipelining.Stage, which leaves the way between them to torch.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>

#include "python/src/bind.h"
#include "python/src/state.h"
#include "python/src/tensors.h"
#include "strait/boundary/channel.h"

namespace strait::python {
namespace {

/// Where a message stands, and what it is for.
struct MessagePlace {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t micro_batch = 0;
  uint64_t first_row = 0;
  bool training = true;
  bool compressed = true;

  MessageContext context() const {
    MessageContext context;
    context.seed = seed;
    context.step = step;
    context.micro_batch = micro_batch;
    context.first_row = first_row;
    return context;
  }
  MessageMode mode() const { return {.training = training, .compressed = compressed}; }
};

ChannelSpec spec_of(const std::string& name, uint16_t boundary, bool forward, const std::string& codec,
                    const std::string& feedback) {
  ChannelSpec spec{.boundary_name = name,
                   .boundary = boundary,
                   .direction = forward ? Direction::activation : Direction::gradient,
                   .link = make_link(codec, codec == kUncompressed ? kNoFeedback : feedback)};
  expect_no_previous(fmt::format("feedback \"{}\"", feedback), *spec.link);
  if (!spec.link->serves_weights()) {
    throw InputError(
        "feedback \"{}\" keeps something per sample or class, which torch's schedules do not tell apart",
        feedback);
  }
  return spec;
}

/// A sender whose messages all have the size that the receiver knows beforehand.
class SenderEndpoint {
 public:
  explicit SenderEndpoint(const ChannelSpec& spec) : sender_(spec), sizes_(spec) {}

  at::Tensor encode(const at::Tensor& x, const MessagePlace& place) {
    const at::NoGradGuard no_grad;
    const at::Tensor message = as_message(x, "a message");
    const Buffer frame = sender_.encode(message, place.context(), place.mode());
    const auto size = sizes_.frame_size(meta_of(message), place.mode());
    STRAIT_CHECK(size.exact && size.bound == frame.size(), "{} bytes of {}", frame.size(), size.bound);
    at::Tensor bytes = at::empty({static_cast<int64_t>(frame.size())}, at::kByte);
    std::memcpy(bytes.data_ptr(), frame.data(), frame.size());
    return bytes.to(x.device());
  }
  Traffic take_traffic() { return sender_.take_traffic(); }
  StateTensors state() {
    return copy_state([&](StateVisitor& visitor) { sender_.visit_state(visitor); });
  }
  void load(const StateTensors& state) {
    put_state(state, "a stage", [&](StateVisitor& visitor) { sender_.visit_state(visitor); });
  }

 private:
  Sender sender_;
  Receiver sizes_;
};

class ReceiverEndpoint {
 public:
  explicit ReceiverEndpoint(const ChannelSpec& spec) : receiver_(spec) {}

  /// Bytes of a message; InputError where they depend on its values.
  size_t size(const std::vector<int64_t>& shape, const MessagePlace& place) const {
    const auto size = receiver_.frame_size(meta_of_shape(shape), place.mode());
    if (!size.exact) {
      throw InputError(
          "codec \"{}\": the bytes of a message depend on its values, but torch's schedules receive messages "
          "of a size that "
          "is known beforehand; strait.codec(spec).exact says which codecs have it",
          receiver_.link().codec().spec());
    }
    return size.bound;
  }

  /// Of the shape and type of `like`, on the device of the bytes.
  at::Tensor decode(const at::Tensor& bytes, const at::Tensor& like, const MessagePlace& place) {
    const at::NoGradGuard no_grad;
    const at::Tensor here = bytes.to(at::kCPU).contiguous();
    Buffer frame(here.nbytes());
    frame.resize(here.nbytes());
    std::memcpy(frame.data(), here.data_ptr(), here.nbytes());
    MessageContext context = place.context();
    context.device = bytes.device();
    return narrowed(receiver_.decode(std::move(frame), meta_of_shape(like.sizes()), context, place.mode()),
                    like.scalar_type(), "a message");
  }
  StateTensors state() {
    return copy_state([&](StateVisitor& visitor) { receiver_.visit_state(visitor); });
  }
  void load(const StateTensors& state) {
    put_state(state, "a stage", [&](StateVisitor& visitor) { receiver_.visit_state(visitor); });
  }

 private:
  Receiver receiver_;
};

template <class Endpoint>
std::unique_ptr<Endpoint> make_endpoint(const std::string& name, uint16_t boundary, bool forward,
                                        const std::string& codec, const std::string& feedback) {
  return std::make_unique<Endpoint>(spec_of(name, boundary, forward, codec, feedback));
}

}  // namespace

void bind_endpoints(py::module_& module) {
  py::class_<MessagePlace>(module, "MessagePlace")
      .def(py::init([](int64_t seed, uint64_t step, uint32_t micro_batch, uint64_t first_row, bool training,
                       bool compressed) {
             return MessagePlace{
                 static_cast<uint64_t>(seed), step, micro_batch, first_row, training, compressed};
           }),
           py::arg("seed"), py::arg("step"), py::arg("micro_batch"), py::arg("first_row"), py::arg("training"),
           py::arg("compressed"));
  py::class_<SenderEndpoint>(module, "Sender")
      .def(py::init(&make_endpoint<SenderEndpoint>), py::arg("name"), py::arg("boundary"), py::arg("forward"),
           py::arg("codec"), py::arg("feedback"))
      .def("encode", &SenderEndpoint::encode, ReleaseGil())
      .def("take_traffic", [](SenderEndpoint& self) { return traffic_tuple(self.take_traffic()); })
      .def("state", &SenderEndpoint::state)
      .def("load", &SenderEndpoint::load);
  py::class_<ReceiverEndpoint>(module, "Receiver")
      .def(py::init(&make_endpoint<ReceiverEndpoint>), py::arg("name"), py::arg("boundary"), py::arg("forward"),
           py::arg("codec"), py::arg("feedback"))
      .def("size", &ReceiverEndpoint::size)
      .def("decode", &ReceiverEndpoint::decode, ReleaseGil())
      .def("state", &ReceiverEndpoint::state)
      .def("load", &ReceiverEndpoint::load);
}

}  // namespace strait::python
