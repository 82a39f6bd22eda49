// Feedback around a compressor with state of its own, both from outside the tree, around a codec.

#include "strait/codecs/spec.h"
#include "tests/links/pair.h"

namespace strait {
namespace {

/// The nearest matrix of rank one after a step of power iteration (Vogels et al. 2019, PowerSGD, rank 1): p is
/// X q over its norm, and q becomes X^T p. Sends C(p), and C of how q moves; both ends keep q.
struct RankOneFormat {
  std::shared_ptr<const Codec> codec;

  static MessageMeta left_of(const MessageMeta& meta) { return {{1, static_cast<int64_t>(meta.rows())}}; }
  static MessageMeta right_of(const MessageMeta& meta) { return {{1, static_cast<int64_t>(meta.row_size())}}; }
  at::Tensor part(ByteReader& in, const MessageMeta& meta) const {
    ByteReader own(in.take(codec->payload_size(meta).bound), in.owner());
    return codec->read(own, meta, {}).tensor[0];
  }
};

class RankOneEncoder : public Encoder {
 public:
  RankOneEncoder(RankOneFormat format, at::Tensor basis)
      : format_(std::move(format)), basis_(std::move(basis)) {}

  MessageReport encode(const at::Tensor& x, const MessageContext& /*context*/, ByteWriter& out) override {
    auto [received, basis] = message(x, out);
    basis_ = basis;
    return {{}, received, {}};
  }
  void encode_frozen(const at::Tensor& x, const MessageContext& /*context*/, ByteWriter& out) const override {
    message(x, out);
  }
  void visit_state(StateVisitor& visitor) override { visitor.tensor("basis", basis_); }

 private:
  std::pair<at::Tensor, at::Tensor> message(const at::Tensor& x, ByteWriter& out) const {
    const at::Tensor matrix = x.flatten(1);
    const at::Tensor direction = matrix.mv(basis_);
    const at::Tensor left = write(direction.div(direction.norm()), out);
    const at::Tensor basis = basis_.add(write(matrix.t().mv(left).sub(basis_), out));
    return {at::outer(left, basis).view_as(x), basis};
  }
  at::Tensor write(const at::Tensor& list, ByteWriter& out) const {
    format_.codec->write(list.unsqueeze(0), {}, out);
    return format_.codec->reconstruct(list.unsqueeze(0), {})[0];
  }

  RankOneFormat format_;
  at::Tensor basis_;
};

class RankOneDecoder : public Decoder {
 public:
  RankOneDecoder(RankOneFormat format, at::Tensor basis)
      : format_(std::move(format)), basis_(std::move(basis)) {}

  Decoded decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/) override {
    auto [received, basis] = message(in, meta);
    basis_ = basis;
    return {received, {}};
  }
  at::Tensor decode_frozen(ByteReader& in, const MessageMeta& meta,
                           const MessageContext& /*context*/) const override {
    return message(in, meta).first;
  }
  void visit_state(StateVisitor& visitor) override { visitor.tensor("basis", basis_); }

 private:
  std::pair<at::Tensor, at::Tensor> message(ByteReader& in, const MessageMeta& meta) const {
    const at::Tensor left = format_.part(in, RankOneFormat::left_of(meta));
    const at::Tensor basis = basis_.add(format_.part(in, RankOneFormat::right_of(meta)));
    return {at::outer(left, basis).view(meta.shape), basis};
  }

  RankOneFormat format_;
  at::Tensor basis_;
};

constexpr int64_t kSize = 12;

/// `rank-one[,start=NUMBER]`: every element of the first q.
class RankOne : public Link {
 public:
  RankOne(const std::shared_ptr<const Codec>& codec, OperatorSpec spec)
      : Link(kFirstOwnId + 3, codec), start_(std::stof(spec.option("start", "1"))) {
    spec.finish();
  }

  bool sends_codec_messages() const override { return false; }
  PayloadSize payload_size(const MessageMeta& meta) const override {
    return {codec().payload_size(RankOneFormat::left_of(meta)).bound +
                codec().payload_size(RankOneFormat::right_of(meta)).bound,
            true};
  }
  std::unique_ptr<Encoder> make_encoder() const override {
    return std::make_unique<RankOneEncoder>(RankOneFormat{shared_codec()}, at::full({kSize}, start_));
  }
  std::unique_ptr<Decoder> make_decoder() const override {
    return std::make_unique<RankOneDecoder>(RankOneFormat{shared_codec()}, at::full({kSize}, start_));
  }

 private:
  float start_;
};

std::shared_ptr<const Link> rank_one(const std::string& spec = "rank-one,start=0.5") {
  return std::make_shared<const RankOne>(make_codec("fp16"), OperatorSpec::parse("compressor", spec));
}

at::Tensor message(uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({5, 3, 4});
}

/// The compressor by its formulas, with torch's float16: what the receiver sees of a message.
struct RankOneDefinition {
  at::Tensor next(const at::Tensor& x) {
    const auto rounded = [](const at::Tensor& t) { return t.to(at::kHalf).to(at::kFloat); };
    const at::Tensor matrix = x.flatten(1);
    const at::Tensor direction = matrix.mv(basis);
    const at::Tensor left = rounded(direction.div(direction.norm()));
    basis = basis.add(rounded(matrix.t().mv(left).sub(basis)));
    return at::outer(left, basis).view(x.sizes());
  }

  at::Tensor basis = at::full({kSize}, 0.5F);
};

/// What error feedback shows of messages by its definition.
struct Definition {
  at::Tensor next(const at::Tensor& x) {
    const at::Tensor received = compressor.next(x.add(residual));
    residual = x.add(residual).sub(received);
    return received;
  }

  RankOneDefinition compressor;
  at::Tensor residual = at::zeros({5, 3, 4});
};

TEST(Compressor, FeedbackGoesAroundItAndItAroundACodec) {
  test::Pair pair(make_link(rank_one(), "ef"));
  Definition definition;
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor x = message(step);
    EXPECT_TRUE(at::equal(pair.send(x), definition.next(x))) << step;
    EXPECT_EQ(pair.bytes(), (5 + 12) * 2U);
  }
  EXPECT_TRUE(at::equal(pair.encoder_state().at("residual"), definition.residual));
  EXPECT_TRUE(at::equal(pair.encoder_state().at("basis"), definition.compressor.basis));
  EXPECT_TRUE(at::equal(pair.decoder_state().at("basis"), definition.compressor.basis))
      << "both ends' bits are the same";
  EXPECT_EQ(pair.decoder_state().size(), 1U) << "the residual is the sender's";
}

TEST(Compressor, Ef21SendsThroughItWhatTheEstimateLacks) {
  const auto link = make_link(rank_one(), "ef21");
  test::Pair pair(link);
  RankOneDefinition compressor;
  at::Tensor estimate = at::zeros({5, 3, 4});
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor x = message(step);
    estimate = estimate.add(compressor.next(x.sub(estimate)));
    EXPECT_TRUE(at::equal(pair.send(x), estimate)) << step;
    EXPECT_EQ(pair.bytes(), (5 + 12) * 2U);
  }
  for (const auto& state : {pair.encoder_state(), pair.decoder_state()}) {
    EXPECT_TRUE(at::equal(state.at("estimate"), estimate));
    EXPECT_TRUE(at::equal(state.at("basis"), compressor.basis));
  }
  test::Pair other(link);
  test::load_state(other.encoder(), pair.encoder_state());
  test::load_state(other.decoder(), pair.decoder_state());
  EXPECT_TRUE(at::equal(other.send(message(4)), pair.send(message(4))));
  EXPECT_TRUE(at::equal(other.send(message(5), 0, true), pair.send(message(5), 0, true)));
}

TEST(Compressor, DianaMovesItsEstimateByAShareOfWhatItGives) {
  const auto link = make_link(rank_one(), "diana:0.5");
  test::Pair pair(link);
  RankOneDefinition compressor;
  at::Tensor estimate = at::zeros({5, 3, 4});
  for (uint64_t step = 0; step < 4; ++step) {
    const at::Tensor x = message(step);
    const at::Tensor received = compressor.next(x.sub(estimate));
    EXPECT_TRUE(at::equal(pair.send(x), estimate.add(received))) << step;
    estimate = estimate.add(received.mul(0.5));
  }
  for (const auto& state : {pair.encoder_state(), pair.decoder_state()}) {
    EXPECT_TRUE(at::equal(state.at("estimate"), estimate));
    EXPECT_TRUE(at::equal(state.at("basis"), compressor.basis));
  }
}

TEST(Compressor, AqSgdSendsThroughItWhatTheBuffersLack) {
  const auto link = make_link(rank_one(), "aq-sgd");
  test::Pair shared(link);  // one store for both ends
  test::Pair apart(link, {link->make_encoder(), link->make_decoder()});
  RankOneDefinition compressor;
  std::map<int64_t, at::Tensor> buffers;
  const std::vector<std::vector<int64_t>> batches = {{4, 7, 1, 0, 9}, {7, 2, 9, 3, 4}, {2, 3, 4, 7, 9}};
  for (size_t step = 0; step < batches.size(); ++step) {
    const at::Tensor x = message(step);
    std::vector<int64_t> later;
    for (int64_t row = 0; row < 5; ++row) {
      if (buffers.contains(batches[step][static_cast<size_t>(row)])) later.push_back(row);
    }
    at::Tensor expected = x.clone();
    if (!later.empty()) {
      std::vector<at::Tensor> known;
      for (const int64_t row : later) known.push_back(buffers.at(batches[step][static_cast<size_t>(row)]));
      const at::Tensor rows = at::tensor(later);
      const at::Tensor before = at::stack(known);
      expected.index_copy_(0, rows, before.add(compressor.next(x.index_select(0, rows).sub(before))));
    }
    for (int64_t row = 0; row < 5; ++row) {
      buffers[batches[step][static_cast<size_t>(row)]] = expected[row].clone();
    }
    const MessageContext context{.ids = batches[step]};
    EXPECT_TRUE(at::equal(shared.send(x, context), expected)) << step;
    EXPECT_TRUE(at::equal(apart.send(x, context), expected)) << step;
  }
  EXPECT_TRUE(at::equal(shared.encoder_state().at("basis"), compressor.basis));
  EXPECT_TRUE(at::equal(apart.decoder_state().at("basis"), compressor.basis));
}

TEST(Compressor, ItsStateIsSavedWithTheFeedbacks) {
  const auto link = make_link(rank_one(), "ef");
  test::Pair pair(link);
  pair.send(message(0));
  pair.send(message(1));
  test::Pair other(link);
  test::load_state(other.encoder(), pair.encoder_state());
  test::load_state(other.decoder(), pair.decoder_state());
  for (uint64_t step = 2; step < 4; ++step) {
    EXPECT_TRUE(at::equal(other.send(message(step)), pair.send(message(step)))) << step;
  }
}

TEST(Compressor, EvaluationReadsAllStateAndMovesNone) {
  test::Pair pair(make_link(rank_one(), "ef"));
  Definition definition;
  definition.next(message(0));
  pair.send(message(0));
  const auto encoder = pair.encoder_state();
  const auto decoder = pair.decoder_state();
  EXPECT_TRUE(at::equal(pair.send(message(1), 0, true), Definition(definition).next(message(1))));
  test::expect_equal(encoder, pair.encoder_state());
  test::expect_equal(decoder, pair.decoder_state());
}

TEST(Compressor, FeedbackThatNeedsACodecSaysSo) {
  for (const char* feedback : {"ef-mixed", "none"}) {
    EXPECT_THROW(make_link(rank_one(), feedback), InputError) << feedback;
  }
  EXPECT_THROW(make_link(make_link(rank_one(), "ef"), "aq-sgd"), InputError) << "its rows are of other samples";
  EXPECT_THROW(make_link(make_link(rank_one(), "ef"), "ef21,slots=sample"), InputError) << "so are these";
  EXPECT_EQ(make_link(rank_one(), "ef21,slots=sample")->slots(), Slots::samples);
  EXPECT_THROW(make_link(make_link("quant:4", "aq-sgd"), "ef"), InputError);
  EXPECT_THROW(make_link(make_reuse_link(make_codec("topk:0.1")), "ef"), InputError);
}

TEST(Compressor, ALinkOutsideTheTreeReadsOptionsAsThoseInsideDo) {
  EXPECT_THROW(rank_one("rank-one,begin=3"), InputError);
  EXPECT_THROW(rank_one("rank-one:2"), InputError);
}

}  // namespace
}  // namespace strait
