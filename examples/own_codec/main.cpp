// A codec of one's own, with which a network is trained: a bit per value, and the mean magnitude of each row.

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <strait/pipeline.h>
#include <cmath>

using namespace strait;

class Sign : public Codec {
 public:
  Sign() : Codec({kFirstOwnId, "sign"}) {}

 protected:
  static size_t bit_bytes(const MessageMeta& meta) { return (meta.row_size() + 7) / 8; }
  PayloadSize do_payload_size(const MessageMeta& meta) const override {
    return {meta.rows() * (sizeof(float) + bit_bytes(meta)), /*exact=*/true};
  }
  void do_encode(std::span<const float> x, const MessageMeta& meta, const MessageContext& /*context*/,
                 ByteWriter& out) const override {
    for (const size_t n = meta.row_size(); !x.empty(); x = x.subspan(n)) {
      float sum = 0;
      for (size_t i = 0; i < n; ++i) sum += std::abs(x[i]);
      if (!std::isfinite(sum)) throw NumericError("sign: expected finite values");
      out.put(sum / static_cast<float>(n));
      const auto bits = out.claim(bit_bytes(meta));
      for (std::byte& eight : bits) eight = {};
      for (size_t i = 0; i < n; ++i) bits[i / 8] |= std::byte(x[i] < 0) << i % 8;
    }
  }
  void do_decode(ByteReader& in, const MessageMeta& meta, const MessageContext& /*context*/,
                 std::span<float> out) const override {
    for (const size_t n = meta.row_size(); !out.empty(); out = out.subspan(n)) {
      const auto scale = in.get<float>();
      const auto bits = in.take(bit_bytes(meta));
      for (size_t i = 0; i < n; ++i) out[i] = (std::to_integer<int>(bits[i / 8]) >> i % 8 & 1) ? -scale : scale;
    }
  }
};

int main() {
  const at::Tensor x = (at::arange(256).mul(37).remainder(101).to(at::kFloat) / 50 - 1).view({32, 8});
  const at::Tensor target = x.square().mean(1, /*keepdim=*/true);
  const at::Tensor a = (at::arange(128).mul(29).remainder(83).to(at::kFloat) / 83 - 0.5).view({8, 16});
  const at::Tensor b = (at::arange(16).mul(31).remainder(17).to(at::kFloat) / 17 - 0.5).view({16, 1});
  const auto hidden = [a](const at::Tensor& in) { return in.matmul(a).tanh(); };
  const auto output = [b](const at::Tensor& in) { return in.matmul(b); };
  const auto link = make_link(std::make_shared<Sign>());
  Pipeline pipeline({.stages = {{hidden, {a.requires_grad_()}}, {output, {b.requires_grad_()}}},
                     .boundaries = {Boundary("hidden", link, link)},
                     .loss = [](const at::Tensor& y, const at::Tensor& t) { return at::mse_loss(y, t); }});
  for (int step = 0; step <= 40; ++step) {
    const StepReport report = pipeline.train(x, target);
    if (step % 10 == 0) fmt::print("{} {:.6f} {}\n", step, *report.loss, report.traffic.wire_bytes);
    for (at::Tensor& parameter : pipeline.parameters()) {
      parameter.data().sub_(parameter.grad(), /*alpha=*/0.2);
      parameter.mutable_grad().zero_();
    }
  }
}
