#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <unordered_map>
#include <vector>

#include "strait/base/mapped_memory.h"
#include "strait/codecs/value_format.h"
#include "strait/links/link.h"

namespace strait {

/// One buffer per sample, of equal lengths, found by the sample's id: the state of aq-sgd (paper, section 2.5;
/// Wang et al. 2022). A buffer is rounded to the store's format when it is written. In a file, reading ahead
/// and writing behind happen in a thread of their own.
class SampleStore {
 public:
  /// An empty store. Throws Error when its file cannot be made.
  explicit SampleStore(const StoreOptions& options);
  ~SampleStore();
  SampleStore(const SampleStore&) = delete;
  SampleStore& operator=(const SampleStore&) = delete;

  /// Whether the sample has a buffer.
  bool has(int64_t id) const { return slots_.contains(id); }

  /// The buffers of samples that are there, [ids, ...] in the shape `meta` gives.
  at::Tensor read(std::span<const int64_t> ids, const MessageMeta& meta) const;

  /// Makes or replaces the buffers of distinct samples; row i of `values` is for ids[i]. Throws NumericError
  /// for values that the format cannot hold; no buffer has changed then.
  void write(std::span<const int64_t> ids, const at::Tensor& values);

  /// Says which samples will be read soon.
  void prefetch(std::span<const int64_t> ids);

  /// Shows the buffers and whose they are, for saving and loading.
  void visit(StateVisitor& visitor);

 private:
  /// For the thread, which looks at no buffer and at no field of the store but this and the file.
  struct Request {
    bool write = false;
    std::vector<size_t> offsets;  ///< of buffers
    size_t row_bytes = 0;
  };
  Request request(bool write) const { return {.write = write, .offsets = {}, .row_bytes = row_bytes_}; }
  void make_room(size_t slots);
  void post(Request request);
  void serve();

  std::unique_ptr<const ValueFormat> format_;
  MappedMemory memory_;
  std::unordered_map<int64_t, size_t> slots_;
  std::vector<int64_t> ids_;        ///< of each slot, in the order of first visits
  size_t row_bytes_ = 0;            ///< of one buffer; 0 before the first
  std::vector<std::byte> rounded_;  ///< buffers on their way into the store

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Request> requests_;
  bool stopped_ = false;
  std::thread thread_;  ///< for a store in a file
};

/// Bytes of one sample's buffer of `elements` values.
size_t store_row_bytes(const StoreOptions& options, size_t elements);

}  // namespace strait
