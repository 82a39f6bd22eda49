#include <algorithm>
#include <cstring>
#include <limits>

#include "bench/cuda/operations.h"
#include "strait/kernels/cuda/casts.h"
#include "strait/kernels/cuda/on_host.h"
#include "strait/kernels/cuda/sparse.h"

namespace strait::bench {
namespace {

using namespace kernels::cuda;

/// A message of index sets and values, and what the encoder works in, on the device.
struct SparseBuffers {
  std::vector<float> x;
  std::vector<float> state;
  Shared<float> device_x;
  Shared<float> device_state;
  Shared<float> terms;
  Shared<uint8_t> bitmaps;
  Shared<uint8_t> values;
  Shared<uint64_t> workspace;
  Shared<float> out;
  Shared<uint32_t> faults = on_device<uint32_t>(std::vector<uint32_t>(1));
};

SparseBuffers sparse_buffers_for(const std::vector<float>& x, const SparseRows& shape, ValueType type) {
  SparseBuffers buffers;
  buffers.x = x;
  buffers.state.resize(x.size());
  for (size_t i = 0; i < x.size(); ++i) buffers.state[i] = x[x.size() - 1 - i] / 4;
  buffers.device_x = on_device<float>(x);
  buffers.device_state = on_device<float>(buffers.state);
  buffers.terms = on_device<float>(x.size());
  buffers.bitmaps = on_device<uint8_t>(shape.rows * shape.bitmap_bytes());
  buffers.values = on_device<uint8_t>(shape.rows * shape.k * value_size(type));
  buffers.workspace =
      on_device<uint64_t>(std::max(shape.select_workspace(), shape.read_workspace()) / sizeof(uint64_t) + 1);
  buffers.out = on_device<float>(x.size());
  return buffers;
}

/// What the host makes of the buffers' tensor and state.
struct Expected {
  std::vector<uint8_t> bitmaps;
  std::vector<uint8_t> values;
  std::vector<float> state;
  uint32_t faults = 0;
};

template <Feedback feedback>
Expected expected_of(const std::vector<float>& x, const std::vector<float>& state, const SparseRows& shape,
                     ValueType type) {
  Expected expected;
  const size_t list = shape.k * value_size(type);
  expected.bitmaps.resize(shape.rows * shape.bitmap_bytes());
  expected.values.resize(shape.rows * list);
  expected.state = state;
  std::vector<float> terms(shape.n);
  for (uint64_t row = 0; row < shape.rows; ++row) {
    expected.faults |= on_host::write_largest<feedback>(
        std::span(x).subspan(row * shape.n, shape.n), std::span(expected.state).subspan(row * shape.n, shape.n),
        terms, shape.k, type,
        std::span(expected.bitmaps).subspan(row * shape.bitmap_bytes(), shape.bitmap_bytes()),
        expected.values.data() + row * list);
  }
  return expected;
}

/// Adds the encoder, and the decoder in both its ways.
template <Feedback feedback>
void add_topk(std::vector<Operation>& operations, const std::string& name, const std::vector<float>& x,
              const SparseRows& shape, ValueType type) {
  const SparseBuffers at = sparse_buffers_for(x, shape, type);
  const auto encode = [=] {
    write_largest(at.device_x->data(), {feedback, at.device_state->data()}, at.terms->data(), shape, type,
                  at.bitmaps->data(), at.values->data(), at.workspace->data(), at.faults->data(), {});
  };
  const auto encode_and_compare = [=](const std::vector<float>& tensor) {
    at.device_x->set(tensor);
    at.device_state->set(at.state);
    at.faults->set({0});
    encode();
    const Expected expected = expected_of<feedback>(tensor, at.state, shape, type);
    if (expected.faults != 0) return (at.faults->get()[0] & kNotSendable) != 0;
    return at.faults->get()[0] == 0 && at.bitmaps->get() == expected.bitmaps &&
           at.values->get() == expected.values &&
           (feedback == Feedback::none || at.device_state->get() == expected.state);
  };
  const auto check_encoder = [=] {
    auto bad = at.x;
    bad.back() = std::numeric_limits<float>::infinity();
    const bool refuses = encode_and_compare(bad);
    return encode_and_compare(at.x) && refuses;
  };
  operations.push_back({name + " encode", encode, check_encoder});
  if (feedback != Feedback::none) return;
  for (const Placing placing : {Placing::scatter, Placing::add}) {
    const auto decode = [=] {
      read_sparse(at.bitmaps->data(), at.values->data(), type, shape, placing, at.out->data(),
                  at.workspace->data(), at.faults->data(), {});
    };
    const auto check_decoder = [=] {
      const auto bitmaps = at.bitmaps->get();
      at.bitmaps->set(std::vector<uint8_t>(bitmaps.size(), 0xff));
      decode();
      const bool refuses = (at.faults->get()[0] & kNotAMessage) != 0;
      at.bitmaps->set(bitmaps);
      at.faults->set({0});
      at.out->set(at.state);
      decode();
      auto out = at.state;
      const auto values = at.values->get();
      for (uint64_t row = 0; row < shape.rows; ++row) {
        on_host::read_sparse(std::span(bitmaps).subspan(row * shape.bitmap_bytes(), shape.bitmap_bytes()),
                             values.data() + row * shape.k * value_size(type), type, shape.k,
                             placing == Placing::add, std::span(out).subspan(row * shape.n, shape.n));
      }
      const auto got = at.out->get();
      return refuses && at.faults->get()[0] == 0 &&
             std::memcmp(got.data(), out.data(), out.size() * sizeof(float)) == 0;
    };
    operations.push_back({name + (placing == Placing::add ? " add" : " decode"), decode, check_decoder});
  }
}

}  // namespace

std::vector<Operation> sparse_operations(const Shape& shape, const std::vector<float>& x) {
  std::vector<Operation> operations;
  const auto rows_keeping = [&](double share) {
    const auto k = static_cast<uint64_t>(share * static_cast<double>(shape.row_size));
    return SparseRows{shape.rows, shape.row_size, std::max<uint64_t>(1, k)};
  };
  for (const auto& [name, share] :
       {std::pair("topk:0.01", 0.01), std::pair("topk:0.1", 0.1), std::pair("topk:0.5", 0.5)}) {
    add_topk<Feedback::none>(operations, name, x, rows_keeping(share), ValueType::fp32);
  }
  const SparseRows tenth = rows_keeping(0.1);
  add_topk<Feedback::none>(operations, "topk:0.1,fp16", x, tenth, ValueType::fp16);
  add_topk<Feedback::none>(operations, "topk:0.1,bf16", x, tenth, ValueType::bf16);
  add_topk<Feedback::ef>(operations, "ef topk:0.1", x, tenth, ValueType::fp32);
  add_topk<Feedback::ef>(operations, "ef topk:0.1,fp16", x, tenth, ValueType::fp16);
  add_topk<Feedback::ef21>(operations, "ef21 topk:0.1", x, tenth, ValueType::fp32);
  add_topk<Feedback::ef21>(operations, "ef21 topk:0.1,fp16", x, tenth, ValueType::fp16);
  return operations;
}

std::vector<Operation> cast_operations(const Shape& shape, const std::vector<float>& x) {
  std::vector<Operation> operations;
  for (const auto& [name, type] : {std::pair("fp16", ValueType::fp16), std::pair("bf16", ValueType::bf16)}) {
    const SparseBuffers at = sparse_buffers_for(x, {1, shape.elements(), shape.elements()}, type);
    const uint64_t count = shape.elements();
    const auto encode = [=, type = type] {
      narrow(at.device_x->data(), count, type, at.values->data(), at.faults->data(), {});
    };
    const auto check_encoder = [=, type = type] {
      encode();
      std::vector<uint8_t> expected(count * 2);
      const uint32_t faults = on_host::narrow(at.x, type, expected.data());
      return at.faults->get()[0] == faults && at.values->get() == expected;
    };
    operations.push_back({std::string(name) + " encode", encode, check_encoder});
    const auto decode = [=, type = type] {
      widen(at.values->data(), count, type, at.out->data(), at.faults->data(), {});
    };
    const auto check_decoder = [=, type = type] {
      decode();
      std::vector<float> expected(count);
      const uint32_t faults = on_host::widen(at.values->get().data(), type, expected);
      return at.faults->get()[0] == faults && at.out->get() == expected;
    };
    operations.push_back({std::string(name) + " decode", decode, check_decoder});
  }
  return operations;
}

}  // namespace strait::bench
