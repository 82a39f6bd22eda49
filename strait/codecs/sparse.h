#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "strait/base/bytes.h"
#include "strait/codecs/codec.h"
#include "strait/codecs/index_set.h"
#include "strait/codecs/value_format.h"

namespace strait {

class DeviceKernels;
struct KernelFeedback;
struct SparseParts;

/// Where the groups of a message come from. Several groups may be asked for at once.
class SparseSource {
 public:
  virtual ~SparseSource() = default;

  /// Marks the k positions that the group keeps and gives their elements in the order of their index, where
  /// they stay until the thread's next call.
  virtual std::span<const float> select(size_t group, std::span<uint64_t> mask) const = 0;

  /// What the receiver will see of the values that select() gave, for a source that asks; `received` may be
  /// written to.
  virtual void sent(size_t /*group*/, std::span<const uint64_t> /*mask*/, std::span<const float> /*values*/,
                    std::span<float> /*received*/) const {}

  /// Whether sent() is to be called, which costs decoding the values.
  virtual bool asks_what_is_sent() const { return false; }
};

/// Where the groups of a message go. Several may come at once.
class SparseSink {
 public:
  virtual ~SparseSink() = default;

  /// Takes the k values of a group in the order of their index.
  virtual void receive(size_t group, std::span<const uint64_t> mask, std::span<const float> values) const = 0;
};

/// How the set of positions is coded. Automatic takes the interlaced code where that is a sixteenth shorter
/// than the others should be; else of the others the one with fewer bytes, the bitmap when equal.
enum class IndexCode { automatic, bitmap, rice, interlaced };

/// One group's index set as it stands in a message.
struct CodedSet {
  uint8_t code = 0;                  ///< 0: bitmap; 1 + r: Rice; 32: interlaced
  std::span<const std::byte> bytes;  ///< the coded set
};

/// Calls work(group) for every group, several at once where LibTorch has threads.
template <class Work>
void for_each_group(const SparseShape& shape, const Work& work) {
  constexpr size_t kGrain = 1 << 15;  // elements that a thread handles at least
  const auto grain = static_cast<int64_t>(std::max<size_t>(1, kGrain / shape.n));
  at::parallel_for(0, static_cast<int64_t>(shape.groups), grain, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) work(static_cast<size_t>(group));
  });
}

/// The context of a message's list of this number.
inline MessageContext context_of_list(const MessageContext& message, size_t list) {
  MessageContext own = message;
  own.first_row += list;
  return own;
}

/// What a kept value is multiplied with before it is sent: 1, or n / k, which is right on average where all
/// positions are as likely to be kept.
enum class ValueScale { none, unbiased };

/// Writes and reads the kept values of each group in the order of their index, one list a group, for a receiver
/// that knows the indices, or where k == n. Stateless.
class ValueLists {
 public:
  /// Values in this format, multiplied by this.
  explicit ValueLists(std::unique_ptr<const ValueFormat> values, ValueScale scale = ValueScale::none)
      : values_(std::move(values)), scale_(scale) {}

  /// Bytes of the values.
  size_t values_size(const SparseShape& shape) const { return shape.groups * values_->size(shape.k); }

  // Contexts are those of ValueFormat: a list's own (context_of_list()) or, for all groups, the message's.

  /// Writes one group's elements `x` at the masked positions to `out`, of values_->size(k) bytes; all of them
  /// where k == n, and then the mask is not looked at. Throws NumericError when one cannot be sent.
  void write_list(std::span<const float> x, std::span<const uint64_t> mask, const SparseShape& shape,
                  const MessageContext& context, std::span<std::byte> out) const;

  /// Reads one group's values to their places in `out`, and +0 to the others. Throws WireError.
  void read_list(std::span<const std::byte> in, std::span<const uint64_t> mask, const SparseShape& shape,
                 const MessageContext& context, std::span<float> out) const;

  /// write_list() for every group; `out` gets values_size().
  void write_values(std::span<const float> x, const IndexSet& indices, const MessageContext& context,
                    ByteWriter& out) const;

  /// read_list() for every group.
  void read_values(ByteReader& in, const IndexSet& indices, const MessageContext& context,
                   std::span<float> out) const;

  /// What the receiver sees of groups [G, n] of this shape that keep the positions `kept`, int64 [G, k] in any
  /// order (undefined where k == n, 0 < k), on their device.
  at::Tensor reconstruct(const at::Tensor& groups, const at::Tensor& kept, const SparseShape& shape,
                         const MessageContext& context) const;

  /// The lists of groups as write_list() writes them, by tensor operations: uint8 [G, bytes of a list]; `kept`
  /// in ascending order. For values that have a composed form.
  at::Tensor composed_write(const at::Tensor& groups, const at::Tensor& kept, const SparseShape& shape) const;

  /// The way back to groups [G, n]; undefined for what read_list() refuses.
  at::Tensor composed_read(const at::Tensor& bytes, const at::Tensor& kept, const SparseShape& shape) const;

  /// How a value is written.
  const ValueFormat& values() const { return *values_; }

 private:
  float factor(const SparseShape& shape) const;

  std::unique_ptr<const ValueFormat> values_;
  ValueScale scale_;
};

/// Writes and reads sparse payloads (docs/wire_format.md, "topk"): index sets, then values in the order of
/// their index. Stateless.
class SparseFormat : public ValueLists {
 public:
  /// A format that codes index sets and values so.
  SparseFormat(IndexCode index, std::unique_ptr<const ValueFormat> values);

  /// Bytes of a payload.
  PayloadSize size(const SparseShape& shape) const;

  /// Writes what the source selects of each group, k < n; the index sets go to `indices`, which may be null.
  /// Throws NumericError when a value cannot be sent.
  void write(const SparseShape& shape, const SparseSource& source, const MessageContext& context,
             ByteWriter& out, IndexSet* indices) const;

  /// Hands each group to the sink, k < n; the index sets go to `indices`, which may be null. Throws WireError,
  /// when it may have handed over some.
  void read(ByteReader& in, const SparseShape& shape, const SparseSink& sink, const MessageContext& context,
            IndexSet* indices) const;

  // The same on the device of groups [G, n], as a message whose index sets are all bitmaps: the payload where
  // they are so in it. For values that have a composed form.

  /// Bytes of such a message.
  size_t parts_size(const SparseShape& shape) const;

  /// Writes the payload of one; the index sets go to `indices`, which may be null.
  void write_parts(std::span<const std::byte> message, const SparseShape& shape, ByteWriter& out,
                   IndexSet* indices) const;

  /// Reads a payload to one of parts_size() bytes; the index sets go to `indices`, which may be null. Throws
  /// WireError.
  void read_parts(ByteReader& in, const SparseShape& shape, std::span<std::byte> message,
                  IndexSet* indices) const;

  /// The parts of a message of groups that keep the positions `kept`, int64 [G, k] in any order, by tensor
  /// operations.
  SparseParts composed_parts(const at::Tensor& groups, const at::Tensor& kept, const SparseShape& shape) const;

  /// The same of groups that keep their elements of largest magnitude, by kernels; undefined where they have
  /// none for such groups. With feedback the values must be plain.
  SparseParts largest_by(const DeviceKernels& kernels, const at::Tensor& groups, const SparseShape& shape,
                         const KernelFeedback& feedback) const;

  /// The message of these parts; undefined where they are.
  static at::Tensor message_of(const SparseParts& parts);

  /// The groups of a message, k < n; undefined for one that holds what read() refuses.
  at::Tensor device_decode(const at::Tensor& message, const SparseShape& shape) const;

  /// Adds them to the sum, by kernels; for values that are plain. False for what read() refuses; then the sum
  /// is undefined.
  bool add_by(const DeviceKernels& kernels, const at::Tensor& message, const SparseShape& shape,
              at::Tensor& sum) const;

 private:
  bool is_payload(const SparseShape& shape, const IndexSet* indices) const;
  size_t index_bound(const SparseShape& shape) const;
  bool allows(IndexCode index) const { return index_ == IndexCode::automatic || index_ == index; }
  CodedSet write_set(std::span<const uint64_t> mask, const SparseShape& shape,
                     std::span<std::byte> space) const;
  void check_set(size_t group, const CodedSet& set, const SparseShape& shape) const;
  static SparseParts parts_of(const at::Tensor& message, const SparseShape& shape);
  template <class Fill>
  void write_groups(const SparseShape& shape, const Fill& fill, ByteWriter& out, IndexSet* indices) const;
  template <class Take>
  void read_groups(ByteReader& in, const SparseShape& shape, const Take& take, IndexSet* indices) const;
  std::span<const CodedSet> read_sets(ByteReader& in, const SparseShape& shape) const;

  IndexCode index_;
};

}  // namespace strait
