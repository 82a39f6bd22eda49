#include <algorithm>
#include <cstring>
#include <limits>

#include "strait/kernels/cuda/casts.h"
#include "strait/kernels/cuda/sparse.h"
#include "tests/cuda/on_host.h"
#include "tests/cuda/operations.h"

namespace strait::cuda_check {
namespace {

using namespace kernels::cuda;

/// A tensor, and on the device a message of index sets and values, and what kernels work in.
struct SparseBuffers {
  SparseBuffers(const SharedTensor& of, const SparseRows& shape, ValueType type)
      : tensor(of),
        bitmaps(on_device<uint8_t>(shape.rows * shape.bitmap_bytes())),
        values(on_device<uint8_t>(shape.rows * shape.k * value_size(type))),
        workspace(on_device<uint64_t>(
            std::max(shape.select_workspace(), shape.read_workspace()) / sizeof(uint64_t) + 1)) {}

  SharedTensor tensor;
  Shared<uint8_t> bitmaps;
  Shared<uint8_t> values;
  Shared<uint64_t> workspace;
};

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

/// The last row's last one in the last bit, of a row that is not whole bytes: as many ones, but not a message.
std::vector<uint8_t> with_last_one_behind_row(std::vector<uint8_t> bitmaps) {
  size_t last = bitmaps.size() - 1;
  while (bitmaps[last] == 0) --last;
  bitmaps[last] = static_cast<uint8_t>(bitmaps[last] & (bitmaps[last] - 1));
  bitmaps.back() = static_cast<uint8_t>(bitmaps.back() | 0x80);
  return bitmaps;
}

/// Adds the encoder, and the decoder in both its ways.
template <Feedback feedback>
void add_topk(std::vector<Operation>& operations, const std::string& name, const SharedTensor& tensor,
              const SparseRows& shape, ValueType type) {
  const SparseBuffers at(tensor, shape, type);
  const auto encode = [=] {
    write_largest(at.tensor->device_x.data(), {feedback, at.tensor->device_state.data()},
                  at.tensor->terms.data(), shape, type, at.bitmaps->data(), at.values->data(),
                  at.workspace->data(), at.tensor->faults.data(), {});
  };
  const auto encode_and_compare = [=](const std::vector<float>& x) {
    at.tensor->device_x.set(x);
    at.tensor->device_state.set(at.tensor->state);
    at.tensor->faults.set({0});
    encode();
    const Expected expected = expected_of<feedback>(x, at.tensor->state, shape, type);
    if (expected.faults != 0) return (at.tensor->faults.get()[0] & kNotSendable) != 0;
    return at.tensor->faults.get()[0] == 0 && at.bitmaps->get() == expected.bitmaps &&
           at.values->get() == expected.values &&
           (feedback == Feedback::none || at.tensor->device_state.get() == expected.state);
  };
  const auto check_encoder = [=] {
    auto bad = at.tensor->x;
    bad.back() = std::numeric_limits<float>::infinity();
    const bool refuses = encode_and_compare(bad);
    return encode_and_compare(at.tensor->x) && refuses;
  };
  operations.push_back({name + " encode", encode, check_encoder});
  if (feedback != Feedback::none) return;
  for (const Placing placing : {Placing::scatter, Placing::add}) {
    const auto decode = [=] {
      read_sparse(at.bitmaps->data(), at.values->data(), type, shape, placing, at.tensor->out.data(),
                  at.workspace->data(), at.tensor->faults.data(), {});
    };
    const auto check_decoder = [=] {
      const auto bitmaps = at.bitmaps->get();
      const auto refuses = [&](const std::vector<uint8_t>& others) {
        at.bitmaps->set(others);
        at.tensor->faults.set({0});
        at.tensor->out.set(at.tensor->state);
        decode();
        return (at.tensor->faults.get()[0] & kNotAMessage) != 0;
      };
      const bool refuses_others = refuses(std::vector<uint8_t>(bitmaps.size(), 0xff)) &&
                                  (shape.n % 8 == 0 || refuses(with_last_one_behind_row(bitmaps)));
      at.bitmaps->set(bitmaps);
      at.tensor->faults.set({0});
      at.tensor->out.set(at.tensor->state);
      decode();
      auto out = at.tensor->state;
      const auto values = at.values->get();
      for (uint64_t row = 0; row < shape.rows; ++row) {
        on_host::read_sparse(std::span(bitmaps).subspan(row * shape.bitmap_bytes(), shape.bitmap_bytes()),
                             values.data() + row * shape.k * value_size(type), type, shape.k,
                             placing == Placing::add, std::span(out).subspan(row * shape.n, shape.n));
      }
      const auto got = at.tensor->out.get();
      return refuses_others && at.tensor->faults.get()[0] == 0 &&
             std::memcmp(got.data(), out.data(), out.size() * sizeof(float)) == 0;
    };
    operations.push_back({name + (placing == Placing::add ? " add" : " decode"), decode, check_decoder});
  }
}

}  // namespace

std::vector<Operation> sparse_operations(const SharedTensor& tensor) {
  const Shape& shape = tensor->shape;
  std::vector<Operation> operations;
  const auto rows_keeping = [&](double share) {
    const auto k = static_cast<uint64_t>(share * static_cast<double>(shape.row_size));
    return SparseRows{shape.rows, shape.row_size, std::max<uint64_t>(1, k)};
  };
  for (const auto& [name, share] :
       {std::pair("topk:0.01", 0.01), std::pair("topk:0.1", 0.1), std::pair("topk:0.5", 0.5)}) {
    add_topk<Feedback::none>(operations, name, tensor, rows_keeping(share), ValueType::fp32);
  }
  const SparseRows tenth = rows_keeping(0.1);
  add_topk<Feedback::none>(operations, "topk:0.1,fp16", tensor, tenth, ValueType::fp16);
  add_topk<Feedback::none>(operations, "topk:0.1,bf16", tensor, tenth, ValueType::bf16);
  add_topk<Feedback::ef>(operations, "ef topk:0.1", tensor, tenth, ValueType::fp32);
  add_topk<Feedback::ef>(operations, "ef topk:0.1,fp16", tensor, tenth, ValueType::fp16);
  add_topk<Feedback::ef21>(operations, "ef21 topk:0.1", tensor, tenth, ValueType::fp32);
  add_topk<Feedback::ef21>(operations, "ef21 topk:0.1,fp16", tensor, tenth, ValueType::fp16);
  return operations;
}

std::vector<Operation> cast_operations(const SharedTensor& tensor) {
  const uint64_t count = tensor->x.size();
  std::vector<Operation> operations;
  for (const auto& [name, type] : {std::pair("fp16", ValueType::fp16), std::pair("bf16", ValueType::bf16)}) {
    const SparseBuffers at(tensor, {1, count, count}, type);
    const auto encode = [=, type = type] {
      narrow(at.tensor->device_x.data(), count, type, at.values->data(), at.tensor->faults.data(), {});
    };
    const auto check_encoder = [=, type = type] {
      at.tensor->faults.set({0});
      encode();
      std::vector<uint8_t> expected(count * 2);
      const uint32_t faults = on_host::narrow(at.tensor->x, type, expected.data());
      return at.tensor->faults.get()[0] == faults && at.values->get() == expected;
    };
    operations.push_back({std::string(name) + " encode", encode, check_encoder});
    const auto decode = [=, type = type] {
      widen(at.values->data(), count, type, at.tensor->out.data(), at.tensor->faults.data(), {});
    };
    const auto check_decoder = [=, type = type] {
      at.tensor->faults.set({0});
      decode();
      std::vector<float> expected(count);
      const uint32_t faults = on_host::widen(at.values->get().data(), type, expected);
      return at.tensor->faults.get()[0] == faults && at.tensor->out.get() == expected;
    };
    operations.push_back({std::string(name) + " decode", decode, check_decoder});
  }
  return operations;
}

}  // namespace strait::cuda_check
