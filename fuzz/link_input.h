#pragma once

#include <ATen/Functions.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "fuzz/codec_input.h"
#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"

namespace strait::fuzz {

/// A link whose state has met the first half of the rows that a message has, ready for that message; all of
/// them where every message has the same. An input of link_fuzz begins with a CodecInput of which `codec`
/// chooses the link and `sample` its codec.
class LinkUnderTest {
 public:
  explicit LinkUnderTest(const CodecInput& input)
      : link_(choose(input)),
        meta_(input.meta()),
        encoder_(link_->make_encoder()),
        decoder_(link_->make_decoder()) {
    ids_.resize(meta_.rows());
    std::iota(ids_.begin(), ids_.end(), 0);
    context_ = input.context();
    context_.ids = ids_;
    previous_ = wave(meta_).mul_(0.5);
    meet_half();
  }

  Encoder& encoder() { return *encoder_; }
  Decoder& decoder() { return *decoder_; }
  const MessageMeta& meta() const { return meta_; }
  size_t bound() const { return link_->payload_size(meta_).bound; }

  /// For the message; fresh positions each time, for a link that reuses them.
  MessageContext context() {
    give_positions(meta_);
    context_.previous = &previous_;
    return context_;
  }

  static size_t count() { return link_samples().size() + 1; }

  /// Numbers that differ from one another.
  static at::Tensor wave(const MessageMeta& meta) {
    at::Tensor x = at::empty(meta.shape, at::kFloat);
    for (int64_t i = 0; i < x.numel(); ++i) {
      const auto t = static_cast<float>(i);
      x.data_ptr<float>()[i] = std::sin(t) * std::cos(0.37F * t);
    }
    return x;
  }

  /// The numbers of `input.codec` and `input.sample` are these, modulo their count.
  static std::shared_ptr<const Link> choose(const CodecInput& input) {
    const std::vector<std::string> codecs = {"topk:0.3", "topk:0.5,values=quant:4,index=rice",
                                             "topk:0.1,scope=tensor"};
    const auto codec = make_codec(codecs[input.sample % codecs.size()]);
    const auto samples = link_samples();
    const size_t number = input.codec % count();
    return number < samples.size() ? make_link(codec, samples[number]) : make_reuse_link(codec);
  }

 private:
  void meet_half() {
    MessageMeta half = meta_;
    if (!link_->needs_previous()) half.shape.front() /= 2;
    context_.ids = std::span(ids_).first(half.rows());
    give_positions(half);
    std::vector<std::byte> space(link_->payload_size(half).bound);
    ByteWriter out(space);
    encoder_->encode(wave(half), context_, out);
    ByteReader in(std::span<const std::byte>(space).first(out.used()));
    decoder_->decode(in, half, context_);
    context_.ids = ids_;
  }

  /// Marks the first k positions of each group.
  void give_positions(const MessageMeta& meta) {
    if (meta.elements() == 0) return;
    const SparseShape shape = link_->codec().sparsifier()->shape_of(meta);
    indices_ = {shape, {}};
    if (shape.k < shape.n) indices_.masks.assign(shape.groups * shape.mask_words(), 0);
    for (size_t group = 0; group < shape.groups && shape.k < shape.n; ++group) {
      for (size_t i = 0; i < shape.k; ++i) {
        indices_.masks[group * shape.mask_words() + i / 64] |= uint64_t{1} << i % 64;
      }
    }
    context_.indices = &indices_;
  }

  std::shared_ptr<const Link> link_;
  MessageMeta meta_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Decoder> decoder_;
  std::vector<int64_t> ids_;
  at::Tensor previous_;
  IndexSet indices_;
  MessageContext context_;
};

}  // namespace strait::fuzz
