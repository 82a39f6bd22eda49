#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "strait/codecs/message.h"

namespace strait {

/// How a value can stand by itself: 4 bytes, or 2 as by kernels/half.h.
enum class PlainValue : uint8_t { fp32, fp16, bf16 };

/// How a list of values is written when both endpoints know how many there are: 32 or 16 bits each, quantised
/// as one group, or as a codec writes a row. Stateless. The context is that of the list's message, with the
/// list's place in the batch for its first row.
class ValueFormat {
 public:
  virtual ~ValueFormat() = default;

  /// Bytes of `count` >= 1 values, always all used.
  virtual size_t size(size_t count) const = 0;

  /// Writes at least one value; out.size() == size(x.size()). Throws NumericError for a value that is not
  /// finite or past the format's range.
  virtual void write(std::span<const float> x, const MessageContext& context,
                     std::span<std::byte> out) const = 0;

  /// Reads at least one value; in.size() == size(out.size()). Throws WireError for what write() does not
  /// write.
  virtual void read(std::span<const std::byte> in, const MessageContext& context,
                    std::span<float> out) const = 0;

  /// read(write(row)) of every row of `lists` [G, n], n >= 1, whose places follow that of the context, on the
  /// tensor's device, bit for bit. Throws NumericError as write() does.
  virtual at::Tensor reconstruct(const at::Tensor& lists, const MessageContext& context) const = 0;

  /// Whether there are the two ways by tensor operations that follow.
  virtual bool has_composed_form() const { return true; }

  /// What write() gives of every row of `lists` [G, n], n >= 1, as tensor operations make it on their device:
  /// uint8 [G, size(n)]. Throws NumericError as write() does.
  virtual at::Tensor composed_write(const at::Tensor& /*lists*/) const { return {}; }

  /// The way back, float32 [G, n]; undefined for what read() refuses.
  virtual at::Tensor composed_read(const at::Tensor& /*bytes*/, int64_t /*n*/) const { return {}; }

  /// reconstruct() in a few LibTorch calls and without checks (Codec::reference), or undefined.
  virtual at::Tensor reference(const at::Tensor& lists) const = 0;

  /// How each value is written, where they are written by themselves and one behind the other.
  virtual std::optional<PlainValue> plain() const { return std::nullopt; }

  /// Whether what is seen of a value depends on where in its list it stands.
  virtual bool depends_on_order() const { return false; }
};

/// `fp32`, `fp16`, `bf16` or `quant:b`, b = 1..8 (rounded to nearest). Null for any other name.
std::unique_ptr<const ValueFormat> make_value_format(std::string_view name);

/// The same, or the spec of a codec that writes a row by itself, in a number of bytes that its length gives,
/// and keeps all of its elements. Throws InputError for any other.
std::unique_ptr<const ValueFormat> make_list_format(std::string_view name);

}  // namespace strait
