#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace strait::cuda_check {

/// Throws std::runtime_error with CUDA's message unless the call succeeded.
inline void expect(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(status));
}

/// Memory of the device.
template <class Item>
class DeviceArray {
 public:
  /// Items of this number, at least one.
  explicit DeviceArray(size_t size) : size_(size) { expect(cudaMalloc(&data_, (size + 1) * sizeof(Item))); }
  /// A copy.
  explicit DeviceArray(const std::vector<Item>& items) : DeviceArray(items.size()) { set(items); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  ~DeviceArray() { cudaFree(data_); }

  /// Where it is.
  Item* data() const { return static_cast<Item*>(data_); }

  /// Copies as many items there.
  void set(const std::vector<Item>& items) {
    expect(cudaMemcpy(data_, items.data(), items.size() * sizeof(Item), cudaMemcpyHostToDevice));
  }

  /// Copies the items from there, when all launches have passed.
  std::vector<Item> get() const {
    std::vector<Item> items(size_);
    expect(cudaMemcpy(items.data(), data_, size_ * sizeof(Item), cudaMemcpyDeviceToHost));
    return items;
  }

 private:
  size_t size_;
  void* data_ = nullptr;
};

/// A shared one, which lambdas keep.
template <class Item>
using Shared = std::shared_ptr<DeviceArray<Item>>;

/// Makes one of a size, or a copy of a vector.
template <class Item, class From>
Shared<Item> on_device(const From& from) {
  return std::make_shared<DeviceArray<Item>>(from);
}

}  // namespace strait::cuda_check
