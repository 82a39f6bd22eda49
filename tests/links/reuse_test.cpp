#include "strait/codecs/sparsifier.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

/// What comes of a tensor, and the indices that each endpoint reports.
struct Selected {
  IndexSet at_sender;
  IndexSet at_receiver;
  at::Tensor received;
};

Selected send_selecting(const Codec& codec, const at::Tensor& x) {
  Selected all;
  std::vector<std::byte> space(codec.payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  all.at_sender = codec.write(x, {.wants_indices = true}, out);
  ByteReader in(std::span<const std::byte>(space).first(out.used()));
  Decoded message = codec.read(in, meta_of(x), {.wants_indices = true});
  all.received = message.tensor;
  all.at_receiver = std::move(message.indices);
  return all;
}

class Reuse : public testing::TestWithParam<const char*> {};

TEST_P(Reuse, TheGradientKeepsThePositionsOfTheActivations) {
  at::manual_seed(1);
  const auto codec = make_codec(GetParam());
  // Zeros that are kept for want of anything larger count as kept.
  const at::Tensor activations = at::randn({4, 50}).relu().masked_fill(at::rand({4, 50}).lt(0.8), 0);
  const Selected activation = send_selecting(*codec, activations);
  EXPECT_EQ(activation.at_sender.masks, activation.at_receiver.masks);
  EXPECT_EQ(activation.at_sender.shape, activation.at_receiver.shape);

  const at::Tensor gradients = at::randn({4, 50}) + 10;  // no zero among them
  const auto link = make_reuse_link(codec);
  std::vector<std::byte> space(link->payload_size(meta_of(gradients)).bound);
  ByteWriter out(space);
  link->make_encoder()->encode(gradients, {.indices = &activation.at_receiver}, out);
  EXPECT_EQ(out.used(), space.size());
  ByteReader in(space);
  const at::Tensor seen =
      link->make_decoder()->decode(in, meta_of(gradients), {.indices = &activation.at_sender}).tensor;

  const SparseShape shape = codec->sparsifier()->shape_of(meta_of(gradients));
  EXPECT_EQ(seen.ne(0).sum().item<int64_t>(), static_cast<int64_t>(shape.groups * shape.k));
  const at::Tensor where = activation.received.ne(0);  // positions that were kept for sure
  EXPECT_TRUE(at::equal(seen.masked_select(where), gradients.masked_select(where)));
  EXPECT_TRUE(at::equal(seen.masked_select(seen.ne(0)), gradients.masked_select(seen.ne(0))));
}

INSTANTIATE_TEST_SUITE_P(Codecs, Reuse,
                         testing::Values("topk:0.1", "topk:0.5,scope=tensor", "topk:1", "topk:0.3,index=bitmap",
                                         "random:0.3", "random:0.2,scope=tensor", "columns:0.3",
                                         "columns:0.1,scope=sample"));

TEST(Reuse, AMessageWithoutPositionsIsABrokenInvariant) {
  const auto link = make_reuse_link(make_codec("topk:0.5"));
  const at::Tensor x = at::randn({2, 4});
  std::vector<std::byte> space(link->payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  EXPECT_THROW(link->make_encoder()->encode(x, {}, out), InternalError);
}

TEST(Reuse, NeedsACodecThatSelectsAndIsNoFeedback) {
  EXPECT_THROW(make_reuse_link(make_codec("fp16")), InputError);
  EXPECT_THROW(make_link("topk:0.5", "reuse"), InputError);
}

}  // namespace
}  // namespace strait
