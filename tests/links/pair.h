#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "strait/links/link.h"

namespace strait::test {

using State = std::map<std::string, at::Tensor>;

/// The state of an endpoint of a link, copied.
template <class Half>
State state_of(Half& half) {
  struct Reader : StateVisitor {
    void tensor(std::string_view name, at::Tensor& value) override {
      if (value.defined()) state.emplace(name, value.clone());
    }
    State state;
  } reader;
  half.visit_state(reader);
  return reader.state;
}

/// Gives an endpoint the state that state_of() read.
template <class Half>
void load_state(Half& half, const State& state) {
  struct Loader : StateVisitor {
    explicit Loader(const State& from) : state(from) {}
    void tensor(std::string_view name, at::Tensor& value) override {
      const auto found = state.find(std::string(name));
      if (found != state.end()) value = found->second.clone();
    }
    const State& state;
  } loader(state);
  half.visit_state(loader);
}

inline void expect_equal(const State& a, const State& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, value] : a) EXPECT_TRUE(at::equal(value, b.at(name))) << name;
}

/// Both endpoints of a link, joined by nothing but bytes.
class Pair {
 public:
  Pair(const std::string& feedback, const std::string& codec, const StoreOptions& store = {})
      : link_(make_link(codec, feedback, store)),
        encoder_(link_->make_encoder()),
        decoder_(make_link(codec, feedback, store)->make_decoder()) {}

  /// Endpoints that may share their state.
  explicit Pair(const std::shared_ptr<const Link>& link) : Pair(link, link->make_ends()) {}

  /// These endpoints of the link.
  Pair(std::shared_ptr<const Link> link, LinkEnds ends)
      : link_(std::move(link)), encoder_(std::move(ends.encoder)), decoder_(std::move(ends.decoder)) {}

  at::Tensor send(const at::Tensor& x, const MessageContext& context, bool frozen = false) {
    std::vector<std::byte> space(link_->payload_size(meta_of(x)).bound);
    ByteWriter out(space);
    if (frozen) {
      encoder_->encode_frozen(x, context, out);
    } else {
      encoder_->encode(x, context, out);
    }
    bytes_ = out.used();
    ByteReader in(std::span<const std::byte>(space).first(bytes_));
    received_ = frozen ? decoder_->decode_frozen(in, meta_of(x), context)
                       : decoder_->decode(in, meta_of(x), context).tensor;
    return received_;
  }

  at::Tensor send(const at::Tensor& x, size_t first_row = 0, bool frozen = false, uint64_t step = 0) {
    return send(x, {.seed = 3, .step = step, .first_row = first_row}, frozen);
  }

  /// Bytes of the last message, and what was received of it.
  size_t bytes() const { return bytes_; }
  const at::Tensor& last_received() const { return received_; }

  const Link& link() const { return *link_; }

  Encoder& encoder() { return *encoder_; }
  Decoder& decoder() { return *decoder_; }
  State encoder_state() { return state_of(*encoder_); }
  State decoder_state() { return state_of(*decoder_); }

 private:
  std::shared_ptr<const Link> link_;
  std::unique_ptr<Encoder> encoder_;
  std::unique_ptr<Decoder> decoder_;
  size_t bytes_ = 0;
  at::Tensor received_;
};

}  // namespace strait::test
