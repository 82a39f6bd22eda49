#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strait/base/mapped_memory.h"
#include "strait/base/workers.h"
#include "strait/codecs/value_format.h"
#include "strait/links/link.h"

namespace strait {

/// One buffer per sample, of equal lengths, found by the sample's id: the state of aq-sgd (paper, section 2.5;
/// Wang et al. 2022) and of schemes with slots=sample; of schemes with slots=class one per class, found by its
/// label. A buffer is rounded to the store's format when it is
/// written. In a file, reading ahead and writing behind happen in a thread of their own.
class SampleStore {
 public:
  /// An empty store. Throws InputError when its file cannot be made.
  explicit SampleStore(const StoreOptions& options);

  /// Whether the sample has a buffer.
  bool has(int64_t id) const { return slots_.contains(id); }

  /// The samples' buffers, [ids, ...] in the shape `meta` gives, on this device; zeros for a sample that has
  /// none.
  at::Tensor read(std::span<const int64_t> ids, const MessageMeta& meta, c10::Device device) const;

  /// Makes or replaces the buffers of distinct samples; row i of `values`, on any device, is for ids[i]. Throws
  /// NumericError for values that the format cannot hold; no buffer has changed then.
  void write(std::span<const int64_t> ids, const at::Tensor& values);

  /// Says which samples will be read soon.
  void prefetch(std::span<const int64_t> ids);

  /// Shows the buffers and whose they are, for saving and loading.
  void visit(StateVisitor& visitor);

 private:
  void read_rows(std::span<const int64_t> ids, size_t elements, std::span<float> out) const;
  void make_room(size_t slots, size_t ahead);

  /// Lets the thread tell the file of buffers; there it looks at nothing else of the store.
  void advise(void (MappedMemory::*advice)(size_t offset, size_t size) const, std::vector<size_t> offsets);

  std::unique_ptr<const ValueFormat> format_;
  MappedMemory memory_;
  std::unordered_map<int64_t, size_t> slots_;
  std::vector<int64_t> ids_;        ///< of each slot, in the order of first visits
  size_t row_bytes_ = 0;            ///< of one buffer; 0 before the first
  std::vector<std::byte> rounded_;  ///< buffers on their way into the store
  std::optional<Workers> advisor_;  ///< one thread, for a store in a file
};

/// Throws InputError that begins with the place where an id is there twice: a sample's buffer moves once a
/// batch.
void expect_distinct(std::string_view place, std::vector<int64_t> ids);

/// What a state keeps of values [rows, ...] of a message, in plain tensor operations; for Link::reference().
using Keeping = std::function<at::Tensor(const at::Tensor& values, const MessageContext& context)>;

/// That of a state as the options say.
Keeping keeping_of(const SlotOptions& options);

/// Bytes of one sample's buffer of `elements` values.
size_t store_row_bytes(const StoreOptions& options, size_t elements);

}  // namespace strait
