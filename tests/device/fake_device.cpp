#include "tests/device/fake_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <utility>

#include "tests/device/streams.h"

namespace strait::fake {
namespace {

/// Added to the address of the device's memory, so that no processor can use it.
constexpr uintptr_t kFar = uintptr_t{1} << 62;

/// Fills new memory, and what a late copy has not reached; as float32 a large number.
constexpr int kPattern = 0x7b;

constexpr c10::DeviceType kType = c10::DeviceType::PrivateUse1;

Streams& streams() {
  static Streams all;
  return all;
}

/// Memory of the device.
struct Block {
  std::unique_ptr<std::byte[]> bytes;
  Uses uses;
};

thread_local size_t current_stream = 0;

/// Set while an operation computes: its copies to and from the CPU are not the program's.
thread_local bool computes = false;

std::atomic<size_t> bytes_to_host = 0;
std::atomic<bool> is_held = false;

void free_block(void* block);

class FarAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    auto block = std::make_unique<Block>();
    block->bytes.reset(new std::byte[std::max<size_t>(size, 1)]);
    std::memset(block->bytes.get(), kPattern, size);
    block->uses.owner = current_stream;
    {
      const std::lock_guard lock(mutex_);
      blocks_[block->bytes.get()] = block.get();
    }
    auto* const far = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(block->bytes.get()) + kFar);
    return {far, block.release(), &free_block, c10::Device(kType, 0)};
  }
  void copy_data(void* to, const void* from, size_t count) const override {
    std::memcpy(near(to), near(from), count);
  }
  static void* near(const void* far) {
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(far) - kFar);
  }

  /// The block that an address of the device is in.
  Block& block_at(const void* far) {
    const std::lock_guard lock(mutex_);
    return *std::prev(blocks_.upper_bound(static_cast<std::byte*>(near(far))))->second;
  }
  void forget(const Block& block) {
    const std::lock_guard lock(mutex_);
    blocks_.erase(block.bytes.get());
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, Block*> blocks_;
};

FarAllocator& far_allocator() {
  static FarAllocator allocator;
  return allocator;
}

void free_block(void* block) {
  auto* const freed = static_cast<Block*>(block);
  streams().release(freed->uses);
  far_allocator().forget(*freed);
  delete freed;
}

/// Host memory that late copies reach.
class PinnedAllocator : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t size) override {
    auto* const bytes = new std::byte[std::max<size_t>(size, 1)];
    const std::lock_guard lock(mutex_);
    ends_[bytes] = bytes + size;
    return {bytes, bytes, [](void* freed) { instance().free(static_cast<std::byte*>(freed)); },
            c10::Device(c10::kCPU)};
  }
  void copy_data(void* to, const void* from, size_t count) const override { std::memcpy(to, from, count); }
  bool has(const void* pointer) {
    const std::lock_guard lock(mutex_);
    auto next = ends_.upper_bound(static_cast<const std::byte*>(pointer));
    return next != ends_.begin() && pointer < std::prev(next)->second;
  }
  static PinnedAllocator& instance() {
    static PinnedAllocator allocator;
    return allocator;
  }

 private:
  void free(std::byte* bytes) {
    const std::lock_guard lock(mutex_);
    ends_.erase(bytes);
    delete[] bytes;
  }
  std::mutex mutex_;
  std::map<const std::byte*, const std::byte*> ends_;
};

struct Hooks : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex /*index*/) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex /*index*/) const override {
    static const at::Generator generator = at::detail::createCPUGenerator();
    return generator;
  }
  bool isPinnedPtr(const void* data) const override { return PinnedAllocator::instance().has(data); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &PinnedAllocator::instance(); }
};

class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  c10::DeviceType type() const override { return kType; }
  c10::Device exchangeDevice(c10::Device /*device*/) const override { return getDevice(); }
  c10::Device getDevice() const override { return {kType, 0}; }
  void setDevice(c10::Device /*device*/) const override {}
  void uncheckedSetDevice(c10::Device /*device*/) const noexcept override {}
  c10::Stream getStream(c10::Device /*device*/) const override { return stream(current_stream); }
  c10::Stream getDefaultStream(c10::Device /*device*/) const override { return stream(0); }
  c10::Stream getStreamFromGlobalPool(c10::Device /*device*/, bool /*high*/) const override {
    static std::atomic<size_t> next = 0;
    return stream(1 + next++ % (kStreams - 1));
  }
  c10::Stream exchangeStream(c10::Stream next) const override {
    return stream(std::exchange(current_stream, static_cast<size_t>(next.id())));
  }
  void record(void** event, const c10::Stream& of, c10::DeviceIndex /*index*/,
              c10::EventFlag /*flag*/) const override {
    if (*event == nullptr) *event = new Clock();
    *static_cast<Clock*>(*event) = streams().record(static_cast<size_t>(of.id()));
  }
  void block(void* event, const c10::Stream& waits) const override {
    if (event != nullptr) streams().block(static_cast<size_t>(waits.id()), *static_cast<Clock*>(event));
  }
  /// The device goes on while it is asked.
  bool queryEvent(void* event) const override {
    const bool has_passed = streams().has_waited_for(*static_cast<Clock*>(event));
    if (!has_passed && !is_held) streams().wait_for(*static_cast<Clock*>(event));
    return has_passed;
  }
  void* getStreamNativeHandle(const c10::Stream of) const override {
    return reinterpret_cast<void*>(static_cast<uintptr_t>(of.id()));
  }
  double elapsedTime(void* from, void* to, const c10::DeviceIndex /*index*/) const override {
    const auto operations = [](void* event) {
      const auto& clock = *static_cast<Clock*>(event);
      return std::accumulate(clock.begin(), clock.end(), uint64_t{0});
    };
    return static_cast<double>(operations(to)) - static_cast<double>(operations(from));
  }
  void synchronizeEvent(void* event) const override {
    if (event != nullptr) streams().wait_for(*static_cast<Clock*>(event));
  }
  void destroyEvent(void* event, c10::DeviceIndex /*index*/) const noexcept override {
    delete static_cast<Clock*>(event);
  }
  void synchronizeStream(const c10::Stream& of) const override {
    streams().wait_for(streams().record(static_cast<size_t>(of.id())));
  }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void recordDataPtrOnStream(const c10::DataPtr& data, const c10::Stream& stream) const override {
    if (data.device().type() != kType) return;
    static_cast<Block*>(data.get_context())->uses.recorded.set(static_cast<size_t>(stream.id()));
  }

 private:
  static c10::Stream stream(size_t number) {
    return c10::Stream(c10::Stream::UNSAFE, c10::Device(kType, 0), static_cast<c10::StreamId>(number));
  }
};

bool is_far(const at::Tensor& tensor) { return tensor.defined() && tensor.device().type() == kType; }

Uses* uses_of(const at::Tensor& tensor) {
  return &static_cast<Block*>(tensor.storage().data_ptr().get_context())->uses;
}

/// The same elements at an address that the processor can use; only after Streams::run().
at::Tensor near(const at::Tensor& tensor) {
  if (!is_far(tensor) || tensor.numel() == 0)
    return is_far(tensor) ? at::empty(tensor.sizes(), tensor.scalar_type()) : tensor;
  return at::from_blob(FarAllocator::near(tensor.data_ptr()), tensor.sizes(), tensor.strides(),
                       tensor.scalar_type());
}

constexpr int kNever = -1;
std::atomic<int> operations_left = kNever;  ///< before one fails

/// Fails where fail_after() has asked for it. What an operation does with the CPU's is part of it.
void count_operation() {
  if (computes || operations_left < 0) return;
  if (operations_left-- == 0)
    TORCH_CHECK_WITH(OutOfMemoryError, false, "no memory on the fake device\nand a second line");
}

at::Tensor make_empty(c10::SymIntArrayRef size, std::optional<at::ScalarType> type,
                      std::optional<at::Layout> /*layout*/, std::optional<at::Device> /*device*/,
                      std::optional<bool> /*pinned*/, std::optional<at::MemoryFormat> format) {
  count_operation();
  return at::detail::empty_generic(C10_AS_INTARRAYREF_SLOW(size), &far_allocator(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor make_strided(c10::SymIntArrayRef size, c10::SymIntArrayRef stride,
                        std::optional<at::ScalarType> type, std::optional<at::Layout> /*layout*/,
                        std::optional<at::Device> /*device*/, std::optional<bool> /*pinned*/) {
  return at::detail::empty_strided_generic(C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride),
                                           &far_allocator(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

void wait_for_stream() { streams().wait_for(streams().record(current_stream)); }

void copy_to_host(const at::Tensor& from, const at::Tensor& to, bool late) {
  if (computes) {
    to.copy_(near(from));
    return;
  }
  streams().run(current_stream, {uses_of(from)}, {});
  bytes_to_host += from.nbytes();
  if (late && is_pinned(to) && to.is_contiguous()) {
    const at::Tensor snapshot = near(from).to(to.scalar_type()).clone(at::MemoryFormat::Contiguous);
    std::memset(to.data_ptr(), kPattern, to.nbytes());
    streams().put_off(current_stream, [to, snapshot] { to.copy_(snapshot); });
    return;
  }
  wait_for_stream();
  to.copy_(near(from));
}

void copy_from_host(const at::Tensor& from, const at::Tensor& to, bool late) {
  if (computes) {
    near(to).copy_(from);
    return;
  }
  streams().run(current_stream, {}, {uses_of(to)});
  if (late && is_pinned(from)) {
    // Whatever comes first, the memory's use or a wait for the stream.
    const auto copy = std::make_shared<std::function<void()>>([from, there = near(to)] { there.copy_(from); });
    const auto do_once = [](std::function<void()>& work) {
      if (work) std::exchange(work, nullptr)();
    };
    uses_of(to)->late_write = [copy, do_once] { do_once(*copy); };
    streams().put_off(current_stream, [weak = std::weak_ptr(copy), do_once] {
      if (const auto same = weak.lock()) do_once(*same);
    });
    return;
  }
  near(to).copy_(from);
}

at::Tensor copy_tensor(const at::Tensor& from, const at::Tensor& to, bool late) {
  if (to.numel() == 0) return to;
  count_operation();
  if (!is_far(to)) {
    copy_to_host(from, to, late);
  } else if (!is_far(from)) {
    copy_from_host(from, to, late);
  } else {
    streams().run(current_stream, {uses_of(from)}, {uses_of(to)});
    near(to).copy_(near(from));
  }
  return to;
}

at::Tensor copy_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  return copy_tensor(from, to, false);
}

const at::Tensor& resize(const at::Tensor& self, c10::SymIntArrayRef size,
                         std::optional<at::MemoryFormat> /*format*/) {
  const auto sizes = C10_AS_INTARRAYREF_SLOW(size);
  auto* const tensor = self.unsafeGetTensorImpl();
  const size_t bytes = at::detail::computeStorageNbytesContiguous(sizes, self.element_size());
  if (bytes > self.storage().nbytes()) {
    c10::DataPtr grown = far_allocator().allocate(bytes);
    std::memcpy(FarAllocator::near(grown.get()), FarAllocator::near(self.storage().data()),
                self.storage().nbytes());
    self.storage().set_data_ptr_noswap(std::move(grown));
    self.storage().set_nbytes(bytes);
  }
  tensor->set_sizes_contiguous(sizes);
  return self;
}

at::Scalar read_scalar(const at::Tensor& self) {
  const at::Tensor here = at::empty(self.sizes(), self.scalar_type());
  copy_to_host(self, here, false);
  return here.item();
}

void record_stream(at::Tensor& self, c10::Stream stream) {
  uses_of(self)->recorded.set(static_cast<size_t>(stream.id()));
}

/// Adds a tensor of an operation. Throws for one of the CPU that is no number, as a GPU's operations do.
void collect(const at::Tensor& tensor, std::vector<Uses*>& uses) {
  if (is_far(tensor)) {
    uses.push_back(uses_of(tensor));
  } else {
    TORCH_CHECK(!tensor.defined() || tensor.dim() == 0, "an operation of the device on a tensor of the CPU");
  }
}

/// Adds the tensors among these values.
void collect(const c10::IValue& value, std::vector<Uses*>& uses) {
  if (value.isTensor()) {
    collect(value.toTensor(), uses);
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) collect(tensor, uses);
  } else if (value.isOptionalTensorList()) {
    for (const auto& tensor : value.toOptionalTensorVector()) collect(tensor.value_or(at::Tensor()), uses);
  }
}

/// Any other operation: on the CPU, in the order of the current stream.
void compute(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  count_operation();
  const auto& arguments = operation.schema().arguments();
  std::vector<Uses*> reads;
  std::vector<Uses*> writes;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto& value = (*stack)[stack->size() - arguments.size() + i];
    const bool is_written = arguments[i].alias_info() != nullptr && arguments[i].alias_info()->isWrite();
    collect(value, is_written ? writes : reads);
  }
  streams().run(current_stream, reads, writes);
  {
    struct Computing {
      bool before = std::exchange(computes, true);
      ~Computing() { computes = before; }
    } computing;
    at::native::cpu_fallback(operation, stack);
  }
  std::vector<Uses*> results;
  for (size_t i = stack->size() - operation.schema().returns().size(); i < stack->size(); ++i) {
    collect((*stack)[i], results);
  }
  streams().run(current_stream, {}, results);
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&compute>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &make_empty);
  library.impl("empty_strided", &make_strided);
  library.impl("as_strided", &at::native::as_strided_tensorimpl);
  library.impl("view", &at::native::view);
  library.impl("_reshape_alias", &at::native::_reshape_alias);
  library.impl("set_.source_Storage_storage_offset", &at::native::set_storage_cpu_);
  library.impl("resize_", &resize);
  library.impl("_copy_from", &copy_tensor);
  library.impl("_copy_from_and_resize", &copy_and_resize);
  library.impl("_local_scalar_dense", &read_scalar);
  library.impl("record_stream", &record_stream);
}

}  // namespace

at::Device device() {
  static const bool known = [] {
    static Hooks hooks;
    c10::register_privateuse1_backend("fake");
    c10::SetAllocator(kType, &far_allocator());
    static Guard guard;
    c10::impl::device_guard_impl_registry[static_cast<size_t>(kType)].store(&guard);
    at::RegisterPrivateUse1HooksInterface(&hooks);
    return true;
  }();
  (void)known;
  return {kType, 0};
}

std::vector<std::string> take_races() { return streams().take_races(); }

void hold(bool on) { is_held = on; }

std::vector<std::byte> read(const void* pointer, size_t size, void* stream) {
  streams().run(reinterpret_cast<uintptr_t>(stream), {&far_allocator().block_at(pointer).uses}, {});
  const auto* const bytes = static_cast<const std::byte*>(FarAllocator::near(pointer));
  return {bytes, bytes + size};
}

void write(void* pointer, std::span<const std::byte> bytes, void* stream) {
  streams().run(reinterpret_cast<uintptr_t>(stream), {}, {&far_allocator().block_at(pointer).uses});
  std::ranges::copy(bytes, static_cast<std::byte*>(FarAllocator::near(pointer)));
}

size_t take_bytes_to_host() { return bytes_to_host.exchange(0); }

void fail_after(int operations) { operations_left = operations; }

bool has_failed() { return operations_left.exchange(kNever) == kNever; }

bool is_pinned(const at::Tensor& tensor) {
  return tensor.device().is_cpu() && PinnedAllocator::instance().has(tensor.data_ptr());
}

}  // namespace strait::fake
