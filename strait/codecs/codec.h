#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>  // clang wants it complete before any header of ATen/ops

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/base/bytes.h"
#include "strait/codecs/index_set.h"
#include "strait/codecs/message.h"
#include "strait/codecs/spec.h"

namespace strait {

/// Bytes that encode() needs at most; `exact` when it always uses all of them.
struct PayloadSize {
  size_t bound = 0;    ///< bytes at most
  bool exact = false;  ///< always `bound` bytes
};

class FusedFeedback;
class Sparsifier;

/// What names a codec: in frames, and in what people write and read.
struct CodecIdentity {
  uint16_t id = 0;   ///< in the frame header: that of codec_list.def, from kFirstOwnId on for any other codec
  std::string spec;  ///< such as topk:0.1,values=fp16
};

/// Ids below belong to codec_list.def and link_list.def, present and future.
inline constexpr uint16_t kFirstOwnId = 0x8000;

/// What comes of a message.
struct Decoded {
  at::Tensor tensor;  ///< what the receiver sees
  IndexSet indices;   ///< the indices of the elements that were kept, where the context wants them
};

/// What a codec can do besides whose messages come nearer to the tensor where they start from what the last one
/// came to. The receiver needs no more than the message.
class WarmStart {
 public:
  virtual ~WarmStart() = default;

  /// Codec::write() of a message that starts from `start`, and leaves there what the next one may start from:
  /// float32 on the CPU. Where it is undefined or of another shape the message is Codec::write()'s. Nothing has
  /// changed when it throws.
  virtual void write_from(at::Tensor& start, const at::Tensor& x, const MessageContext& context,
                          ByteWriter& out) const = 0;
};

/// What a codec can do besides whose messages have parts that the host codes: on a device its message has
/// another form, of fixed length, that has all that its payload says.
class DeviceForm {
 public:
  virtual ~DeviceForm() = default;

  /// Bytes of the form of a message of this shape that is not empty; those of the payload where that is the
  /// form.
  virtual size_t form_size(const MessageMeta& meta) const = 0;

  /// Writes the payload of a form that device_encode() gave, on the host. Gives the indices that the message
  /// keeps where they are wanted.
  virtual IndexSet payload_of_form(std::span<const std::byte> form, const MessageMeta& meta, bool wants_indices,
                                   ByteWriter& out) const = 0;

  /// Reads a payload to the form that device_decode() takes, form_size() bytes. Throws WireError for bytes that
  /// the codec cannot have written; bytes that are left over are the caller's to find.
  virtual IndexSet form_of_payload(ByteReader& in, const MessageMeta& meta, bool wants_indices,
                                   std::span<std::byte> form) const = 0;
};

/// A stateless compression operator: a pure function of its parameters, the tensor and, where it draws
/// random numbers, the message's context. Immutable, so that both endpoints and all threads may share one.
///
/// The public functions check what no codec should have to check (type, contiguity, length, trailing
/// bytes, empty messages); a codec implements the do_ functions over spans.
class Codec {
 public:
  virtual ~Codec() = default;

  /// The number in the frame header; never reused for another format.
  uint16_t id() const { return identity_.id; }

  /// The spec this codec was made from.
  const std::string& spec() const { return identity_.spec; }

  /// Bytes of the payload of a message of this shape; 0 where it is empty.
  PayloadSize payload_size(const MessageMeta& meta) const;

  /// The message's payload: uint8, [payload_size().bound] elements or fewer, on x's device. `x` is float32 of
  /// any layout. Throws NumericError for a value that cannot be sent.
  at::Tensor encode(const at::Tensor& x, const MessageContext& context = {}) const;

  /// What the receiver sees of a payload, uint8 of one dimension: float32 of meta.shape, contiguous, on the
  /// payload's device. Throws WireError when the payload is not one that encode() can have written.
  at::Tensor decode(const at::Tensor& payload, const MessageMeta& meta,
                    const MessageContext& context = {}) const;

  // The same into memory of the caller's, and out of it.

  /// Writes the payload; at most payload_size().bound bytes are claimed. Nothing has changed when it throws.
  /// Gives the indices that the message keeps where the context wants them and the codec selects.
  IndexSet write(const at::Tensor& x, const MessageContext& context, ByteWriter& out) const;

  /// Consumes all of `in`. The tensor is on the context's device; on the CPU it may keep the reader's owner and
  /// use its bytes in place.
  Decoded read(ByteReader& in, const MessageMeta& meta, const MessageContext& context) const;

  /// write() of a message that is not empty and lies in plain memory.
  void write_elements(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                      ByteWriter& out) const {
    do_encode(x, meta, context, out);
  }

  /// read() of one into plain memory.
  void read_elements(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                     std::span<float> out) const;

  /// decode(encode(x)) without the bytes, bit for bit, on x's device. For measurements and for feedback
  /// on a device; the default really encodes and decodes.
  virtual at::Tensor reconstruct(const at::Tensor& x, const MessageContext& context) const;

  /// reconstruct() as somebody without codecs writes it: in a few LibTorch calls, without packed bits and
  /// checks. What a codec's speed is compared with. Random draws come from LibTorch's generator, and of equal
  /// magnitudes any are kept; otherwise the values are those of the codec, -0 and +0 apart. Undefined for a
  /// codec that has no such form. `x` is not empty.
  virtual at::Tensor reference(const at::Tensor& x) const;

  // The two ways on a device, by its kernels (codecs/device_kernels.h) or by tensor operations: what crosses to
  // the host is the message and not the tensor.
  // Undefined where the codec has no such form, and for bytes that it cannot have written; then the CPU does
  // it.

  /// The payload of x, contiguous and not empty, on its device: the bytes that write() gives, or the form of
  /// them that device_form() knows. Only asked of a codec that has one or always uses all of payload_size().
  /// Throws NumericError as write() does.
  virtual at::Tensor device_encode(const at::Tensor& x, const MessageContext& context) const;

  /// What read() gives of what device_encode() gives, uint8 of one dimension and on its device.
  virtual at::Tensor device_decode(const at::Tensor& payload, const MessageMeta& meta,
                                   const MessageContext& context) const;

  /// Not null for a codec whose message on a device may be another one than its payload.
  virtual const DeviceForm* device_form() const { return nullptr; }

  /// True when what the receiver sees of a row depends on that row and its place in the batch only, so that
  /// one micro-batch or several give the same numbers. False promises nothing.
  virtual bool is_row_wise() const { return false; }

  /// Not null for a codec that keeps k of n elements.
  virtual const Sparsifier* sparsifier() const { return nullptr; }

  /// The codec as one that does the arithmetic of feedback around it in its own passes; null where it cannot
  /// for messages of this shape, device and wishes.
  virtual const FusedFeedback* fused_feedback(const MessageMeta& /*meta*/,
                                              const MessageContext& /*context*/) const {
    return nullptr;
  }

  /// Not null for a codec whose links are to carry a start from message to message.
  virtual const WarmStart* warm_start() const { return nullptr; }

 protected:
  /// Gives the codec its name.
  explicit Codec(CodecIdentity identity) : identity_(std::move(identity)) {}

  // None of these sees an empty message. `x` and `out` are row-major with meta.elements() elements.

  /// Bytes for payload_size().
  virtual PayloadSize do_payload_size(const MessageMeta& meta) const = 0;

  /// Writes the payload. Throws NumericError for a value that cannot be sent.
  virtual void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                         ByteWriter& out) const = 0;

  /// Reads the payload and fills `out`. Throws WireError for bytes that do_encode() cannot have written; bytes
  /// that are left over are the caller's to find.
  virtual void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context,
                         std::span<float> out) const = 0;

  /// read() for a codec whose payload can serve as the tensor; the default fills a new one.
  virtual at::Tensor do_decode_tensor(ByteReader& in, const MessageMeta& meta,
                                      const MessageContext& context) const;

  /// Throws WireError when bytes of the payload are left over.
  void expect_end(const ByteReader& in) const;

  /// Whether a message may be encoded and decoded on a device, as far as its length and indices are concerned.
  /// Throws InputError for one that the codec does not take.
  bool goes_there(const MessageMeta& meta, const MessageContext& context) const;

 private:
  at::Tensor encode_there(const at::Tensor& x, const MessageContext& context) const;
  at::Tensor decode_there(const at::Tensor& payload, const MessageMeta& meta,
                          const MessageContext& context) const;

  CodecIdentity identity_;
};

/// The meta data of a message of this tensor's shape.
MessageMeta meta_of(const at::Tensor& x);

/// One row of codec_list.def.
struct CodecInfo {
  uint16_t id;                                                                   ///< in the frame header
  std::string_view name;                                                         ///< before the colon of a spec
  std::unique_ptr<Codec> (*factory)(CodecIdentity identity, OperatorSpec spec);  ///< throws InputError
  std::string_view parameters;                                                   ///< for `strait codec list`
  std::vector<std::string_view> samples;  ///< what suites run; of these `strait codec bench` the first four
};

/// All codecs in the order of codec_list.def.
const std::vector<CodecInfo>& codec_list();

/// Codecs for the two directions of a boundary.
struct CodecScheme {
  std::string_view activations;  ///< a spec
  std::string_view gradients;    ///< a spec
};

/// The schemes of scheme_list.def, which are worth a look; the first does not compress.
std::span<const CodecScheme> scheme_list();

/// Makes the codec of a spec such as `topk:0.1,values=fp16`. Throws InputError that says what was
/// expected, with the nearest right name for a misspelt one.
std::shared_ptr<const Codec> make_codec(std::string_view spec);

}  // namespace strait
