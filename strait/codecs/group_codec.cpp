#include "strait/codecs/group_codec.h"

#include <ATen/core/ivalue.h>

namespace strait {

at::Tensor GroupCodec::reconstruct(const at::Tensor& x, const MessageContext& /*context*/) const {
  if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
  const Grid grid = scope_.grid(meta_of(x));
  return grid.from_groups(
      reconstruct_groups(grid.as_groups(x.contiguous(), Grid::Filler::zeros), grid.sizes(x)), x);
}

PayloadSize GroupCodec::do_payload_size(const MessageMeta& meta) const {
  const Grid grid = scope_.grid(meta);
  return {grid.groups() * header_size_ + grid.code_bytes(bits_), true};
}

void GroupCodec::do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& /*context*/,
                           ByteWriter& out) const {
  const Grid grid = scope_.grid(meta);
  const auto headers = out.claim(grid.groups() * header_size_);
  const auto codes = out.claim(grid.code_bytes(bits_));
  in_runs(grid, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Grid::Group group = grid.group(i);
      ByteWriter header(headers.subspan(i * header_size_, header_size_));
      encode_group(x.subspan(group.begin, group.size), header, grid.codes(codes, group, bits_));
    }
  });
}

void GroupCodec::do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                           std::span<float> out) const {
  const Grid grid = scope_.grid(meta);
  const auto headers = in.take(grid.groups() * header_size_);
  const auto codes = in.take(grid.code_bytes(bits_));
  in_runs(grid, [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const Grid::Group group = grid.group(i);
      const auto packed = grid.codes(codes, group, bits_);
      check_padding(packed, group.size, bits_);
      ByteReader header(headers.subspan(i * header_size_, header_size_));
      decode_group(header, packed, out.subspan(group.begin, group.size));
    }
  });
}

}  // namespace strait
