#include "strait/codecs/group_codec.h"

#include <ATen/core/ivalue.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "strait/codecs/composed.h"
#include "strait/codecs/quant_group.h"

namespace strait {
namespace {

/// Calls work(begin, group, its codes) for each group of `size` elements, the last of which may be shorter.
template <class Element, class Byte, class Work>
void for_each_group(std::span<Element> x, size_t size, unsigned bits, std::span<Byte> codes, const Work& work) {
  for (size_t begin = 0; begin < x.size(); begin += size) {
    const size_t count = std::min(size, x.size() - begin);
    work(begin, x.subspan(begin, count), codes.subspan(begin / 8 * bits, kernels::packed_size(count, bits)));
  }
}

}  // namespace

at::Tensor TensorGroupCodec::reconstruct(const at::Tensor& x, const MessageContext& context) const {
  if (x.numel() == 0) return x.clone(at::MemoryFormat::Contiguous);
  const Grid grid = scope_.grid(meta_of(x));
  return scope_.from_order(grid.from_groups(values_of(coded(x, grid, context))), x);
}

CodedGroups TensorGroupCodec::coded(const at::Tensor& x, const Grid& grid,
                                    const MessageContext& context) const {
  const auto dither = [&] { return grid.as_groups(dither_of(context, meta_of(x), x), filler_); };
  return code_groups({grid.as_groups(scope_.in_order(x), filler_), grid.sizes(x), dither});
}

std::optional<GroupForm> TensorGroupCodec::kernel_form_of(const MessageMeta& meta,
                                                          const MessageContext& context) const {
  auto form = kernel_form();
  if (form) {
    form->grid = scope_.grid(meta);
    form->bits = bits_;
    form->dither = make_dither(context, meta);
  }
  return form;
}

at::Tensor TensorGroupCodec::device_encode(const at::Tensor& x, const MessageContext& context) const {
  const MessageMeta meta = meta_of(x);
  if (const auto form = kernel_form_of(meta, context)) {
    if (at::Tensor message = write_by_kernels(x, scope_, *form); message.defined()) return message;
  }
  const Grid grid = scope_.grid(meta);
  const CodedGroups groups = coded(x, grid, context);
  return at::cat({groups.headers.reshape(-1), packed_rows(grid.from_groups(groups.codes), bits_).reshape(-1)});
}

at::Tensor TensorGroupCodec::device_decode(const at::Tensor& payload, const MessageMeta& meta,
                                           const MessageContext& context) const {
  if (const auto form = kernel_form_of(meta, context)) {
    if (at::Tensor x = read_by_kernels(payload, meta, scope_, *form); x.defined()) return x;
  }
  const Grid grid = scope_.grid(meta);
  const auto groups = static_cast<int64_t>(grid.groups());
  const int64_t headers = groups * static_cast<int64_t>(header_size_);
  const at::Tensor packed = payload.narrow(0, headers, payload.numel() - headers);
  const at::Tensor codes = unpacked_rows(packed.view({static_cast<int64_t>(grid.rows), -1}),
                                         static_cast<int64_t>(grid.row_size), bits_);
  if (!codes.defined()) return {};
  const at::Tensor values = values_of(
      {payload.narrow(0, 0, headers).view({groups, -1}), grid.as_groups(codes.contiguous(), filler_)});
  if (!values.defined()) return {};
  return scope_.from_order(grid.from_groups(values), at::empty(meta.shape, values.options()));
}

PayloadSize TensorGroupCodec::do_payload_size(const MessageMeta& meta) const {
  const Grid grid = scope_.grid(meta);
  return {grid.groups() * header_size_ + grid.code_bytes(bits_), true};
}

void GroupCodec::do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& context,
                           ByteWriter& out) const {
  const Grid grid = scope().grid(meta);
  const auto headers = out.claim(grid.groups() * header_size());
  const auto codes = out.claim(grid.code_bytes(bits()));
  const kernels::Dither dither = make_dither(context, meta);
  scope().with_ordered(x, meta, [&](std::span<const float> ordered) {
    in_runs(grid, [&](size_t first, size_t last) {
      grid.for_each_run(first, last, [&](size_t number, const Grid::Group& run) {
        ByteWriter own_headers(headers.subspan(number * header_size()));
        encode_groups(ordered.subspan(run.begin, run.size), std::min(grid.group_size, run.size),
                      advanced(dither, run.begin), own_headers, grid.codes(codes, run, bits()));
      });
    });
  });
}

void GroupCodec::do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                           std::span<float> out) const {
  const Grid grid = scope().grid(meta);
  const auto headers = in.take(grid.groups() * header_size());
  const auto codes = in.take(grid.code_bytes(bits()));
  scope().fill_ordered(out, meta, [&](std::span<float> ordered) {
    in_runs(grid, [&](size_t first, size_t last) {
      grid.for_each_run(first, last, [&](size_t number, const Grid::Group& run) {
        const auto packed = grid.codes(codes, run, bits());
        check_padding(packed, run.size, bits());
        ByteReader own_headers(headers.subspan(number * header_size()));
        decode_groups(own_headers, packed, std::min(grid.group_size, run.size),
                      ordered.subspan(run.begin, run.size));
      });
    });
  });
}

void OneByOneCodec::encode_groups(std::span<const float> x, size_t size, const kernels::Dither& dither,
                                  ByteWriter& headers, std::span<std::byte> codes) const {
  for_each_group(x, size, bits(), codes, [&](size_t begin, auto group, auto packed) {
    encode_group(group, advanced(dither, begin), headers, packed);
  });
}

void OneByOneCodec::decode_groups(ByteReader& headers, std::span<const std::byte> codes, size_t size,
                                  std::span<float> out) const {
  for_each_group(out, size, bits(), codes,
                 [&](size_t /*begin*/, auto group, auto packed) { decode_group(headers, packed, group); });
}

}  // namespace strait
