#include "strait/links/integers.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>

#include <limits>

namespace strait {
namespace {

/// The payload: the values in row-major order, in as few bytes each as the limit asks for.
class IntegerFormat {
 public:
  explicit IntegerFormat(int64_t limit) : limit_(limit) {}

  PayloadSize payload_size(const MessageMeta& meta) const {
    return {meta.elements() * (is_short() ? sizeof(uint16_t) : sizeof(uint32_t)), true};
  }

  void write(const at::Tensor& x, ByteWriter& out) const {
    STRAIT_CHECK(x.scalar_type() == at::kLong, "a link of integers takes int64 tensors");
    const at::Tensor dense = x.to(at::kCPU).contiguous();
    const std::span<const int64_t> values(dense.data_ptr<int64_t>(), static_cast<size_t>(dense.numel()));
    for (const int64_t value : values) {
      if (value >= 0 && value < limit_) continue;
      throw NumericError("an integer is {}, expected one from 0 to {}", value, limit_ - 1);
    }
    is_short() ? put_all<uint16_t>(values, out) : put_all<uint32_t>(values, out);
  }

  at::Tensor read(ByteReader& in, const MessageMeta& meta, c10::Device device) const {
    at::Tensor tensor = at::empty(meta.shape, at::kLong);
    const std::span<int64_t> values(tensor.data_ptr<int64_t>(), meta.elements());
    is_short() ? get_all<uint16_t>(in, values) : get_all<uint32_t>(in, values);
    if (in.left() != 0) throw WireError("{} bytes follow the integers", in.left());
    return tensor.to(device);
  }

 private:
  bool is_short() const { return limit_ - 1 <= std::numeric_limits<uint16_t>::max(); }

  template <class T>
  static void put_all(std::span<const int64_t> values, ByteWriter& out) {
    for (const int64_t value : values) out.put(static_cast<T>(value));
  }

  template <class T>
  void get_all(ByteReader& in, std::span<int64_t> values) const {
    for (int64_t& value : values) {
      value = in.get<T>();
      if (value >= limit_) throw WireError("an integer is {}, expected one from 0 to {}", value, limit_ - 1);
    }
  }

  int64_t limit_;
};

class IntegerEncoder : public Encoder {
 public:
  explicit IntegerEncoder(IntegerFormat format) : format_(format) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& context, ByteWriter& out) override {
    format_.write(x, out);
    return {{}, context.wants_received ? x : at::Tensor(), {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& /*context*/, ByteWriter& out) const override {
    format_.write(x, out);
  }

 private:
  IntegerFormat format_;
};

class IntegerDecoder : public Decoder {
 public:
  explicit IntegerDecoder(IntegerFormat format) : format_(format) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& context) override {
    return {format_.read(in, meta, context.device), {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& context) const override {
    return format_.read(in, meta, context.device);
  }

 private:
  IntegerFormat format_;
};

class Integers : public Link {
 public:
  Integers(uint16_t id, std::shared_ptr<const Codec> codec, int64_t limit)
      : Link(id, std::move(codec)), format_(limit) {}

  bool carries_integers() const override { return true; }
  bool serves_gradients() const override { return false; }
  bool sends_codec_messages() const override { return false; }
  std::vector<SparseShape> index_sets(const MessageMeta& /*meta*/) const override { return {}; }
  PayloadSize payload_size(const MessageMeta& meta) const override { return format_.payload_size(meta); }
  std::unique_ptr<Encoder> make_encoder() const override { return std::make_unique<IntegerEncoder>(format_); }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<IntegerDecoder>(format_); }

 private:
  IntegerFormat format_;
};

}  // namespace

std::unique_ptr<Link> make_integers(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  const int64_t limit = spec.integer(spec.argument("the limit"), "the limit of integers", 1, int64_t{1} << 32);
  spec.finish();
  return std::make_unique<Integers>(id, std::move(codec), limit);
}

}  // namespace strait
