#include "strait/models/llama.h"

#include <fmt/format.h>

#include <cmath>

#include "strait/base/error.h"
#include "strait/models/attention.h"
#include "strait/models/decoder_block.h"
#include "strait/models/decoder_keys.h"
#include "strait/models/layer.h"
#include "strait/models/matrix.h"

namespace strait {
namespace {

namespace nn = torch::nn;

/// A matrix as Hugging Face draws it.
std::shared_ptr<Matrix> drawn_matrix(int64_t out, int64_t in) {
  constexpr double kDeviation = 0.02;
  return std::make_shared<Matrix>(torch::empty({out, in}).normal_(0, kDeviation));
}

/// x W^T.
at::Tensor product(const at::Tensor& x, const Matrix& matrix) { return at::linear(x, matrix.weight()); }

/// x / sqrt(mean(x^2) + eps) * weight, over the last dimension, in float32.
class RootMeanSquareNorm : public nn::Module {
 public:
  explicit RootMeanSquareNorm(const LlamaOptions& options)
      : weight_(register_parameter("weight", torch::ones({options.width}))), eps_(options.eps) {}

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor wide = x.to(at::kFloat);
    return weight_ * (wide * (wide.square().mean(-1, /*keepdim=*/true) + eps_).rsqrt());
  }

 private:
  at::Tensor weight_;
  double eps_;
};

/// Turns the pairs (i, i + D/2) of each head's D elements by position * theta^(-2i/D): x is [B, H, T, D].
at::Tensor rotated(const at::Tensor& x, double theta) {
  const int64_t half = x.size(3) / 2;
  const auto numbers = x.options().dtype(at::kFloat).requires_grad(false);
  const at::Tensor frequencies = at::pow(theta, at::arange(half, numbers) * (-1.0 / static_cast<double>(half)));
  const at::Tensor angles = at::arange(x.size(2), numbers).unsqueeze(1) * frequencies;
  const at::Tensor cosine = angles.cos();
  const at::Tensor sine = angles.sin();
  const at::Tensor first = x.narrow(3, 0, half);
  const at::Tensor second = x.narrow(3, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 3).to(x.scalar_type());
}

class GroupedAttention : public nn::Module {
 public:
  explicit GroupedAttention(const LlamaOptions& options)
      : q_(register_module("q_proj", drawn_matrix(options.width, options.width))),
        k_(register_module("k_proj", drawn_matrix(kv_width(options), options.width))),
        v_(register_module("v_proj", drawn_matrix(kv_width(options), options.width))),
        output_(register_module("o_proj", drawn_matrix(options.width, options.width))),
        heads_(options.heads),
        kv_heads_(options.kv_heads),
        theta_(options.theta) {}

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor q = rotated(heads_of(product(x, *q_), heads_), theta_);
    const at::Tensor k = rotated(heads_of(product(x, *k_), kv_heads_), theta_);
    const at::Tensor v = heads_of(product(x, *v_), kv_heads_);
    return product(causal_attention(q, for_all_heads(k), for_all_heads(v)).transpose(1, 2).flatten(2),
                   *output_);
  }

 private:
  static int64_t kv_width(const LlamaOptions& options) {
    return options.width / options.heads * options.kv_heads;
  }

  /// [B, T, H * D] as [B, H, T, D].
  static at::Tensor heads_of(const at::Tensor& x, int64_t heads) {
    return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
  }

  /// Each head of keys or values serves heads / kv_heads of the queries that follow each other.
  at::Tensor for_all_heads(const at::Tensor& x) const {
    return heads_ == kv_heads_ ? x.contiguous() : x.repeat_interleave(heads_ / kv_heads_, 1);
  }

  std::shared_ptr<Matrix> q_;
  std::shared_ptr<Matrix> k_;
  std::shared_ptr<Matrix> v_;
  std::shared_ptr<Matrix> output_;
  int64_t heads_;
  int64_t kv_heads_;
  double theta_;
};

/// down(silu(gate(x)) * up(x)).
class GatedPerceptron : public nn::Module {
 public:
  explicit GatedPerceptron(const LlamaOptions& options)
      : gate_(register_module("gate_proj", drawn_matrix(options.hidden, options.width))),
        up_(register_module("up_proj", drawn_matrix(options.hidden, options.width))),
        down_(register_module("down_proj", drawn_matrix(options.width, options.hidden))) {}

  at::Tensor forward(const at::Tensor& x) const {
    return product(at::silu(product(x, *gate_)) * product(x, *up_), *down_);
  }

 private:
  std::shared_ptr<Matrix> gate_;
  std::shared_ptr<Matrix> up_;
  std::shared_ptr<Matrix> down_;
};

class LlamaEmbed : public Layer {
 public:
  explicit LlamaEmbed(const LlamaOptions& options)
      : tokens_(register_module("embed_tokens", drawn_matrix(options.vocab, options.width))) {}

  at::Tensor forward(const at::Tensor& x) override { return embedded(tokens_->weight(), x); }

  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) override {
    return {sample[0], tokens_->weight().size(1)};
  }

  const at::Tensor& matrix() const { return tokens_->weight(); }

 private:
  std::shared_ptr<Matrix> tokens_;
};

class LlamaBlock : public DecoderBlock {
 public:
  explicit LlamaBlock(const LlamaOptions& options)
      : DecoderBlock(options.recompute),
        norm1_(register_module("input_layernorm", std::make_shared<RootMeanSquareNorm>(options))),
        attention_(register_module("self_attn", std::make_shared<GroupedAttention>(options))),
        norm2_(register_module("post_attention_layernorm", std::make_shared<RootMeanSquareNorm>(options))),
        perceptron_(register_module("mlp", std::make_shared<GatedPerceptron>(options))) {}

 private:
  at::Tensor run(const at::Tensor& x, const at::Tensor& /*input*/) override {
    const at::Tensor y = x + attention_->forward(norm1_->forward(x));
    return y + perceptron_->forward(norm2_->forward(y));
  }

  std::shared_ptr<RootMeanSquareNorm> norm1_;
  std::shared_ptr<GroupedAttention> attention_;
  std::shared_ptr<RootMeanSquareNorm> norm2_;
  std::shared_ptr<GatedPerceptron> perceptron_;
};

class LlamaNorm : public Layer {
 public:
  explicit LlamaNorm(const LlamaOptions& options)
      : norm_(register_module("norm", std::make_shared<RootMeanSquareNorm>(options))) {}

  at::Tensor forward(const at::Tensor& x) override { return norm_->forward(x); }
  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) override { return sample; }

 private:
  std::shared_ptr<RootMeanSquareNorm> norm_;
};

class LlamaHead : public Layer {
 public:
  explicit LlamaHead(std::shared_ptr<Matrix> matrix) : matrix_(register_module("lm_head", std::move(matrix))) {}

  at::Tensor forward(const at::Tensor& x) override { return product(x, *matrix_); }

 private:
  std::shared_ptr<Matrix> matrix_;
};

/// Key by key, what the parts of attention need.
std::optional<SettingComplaint> llama_complaint(const Settings& settings, const SampleForm& samples) {
  if (auto complaint = decoder_complaint(settings, samples)) return complaint;
  const int64_t heads = settings.integer("heads");
  const int64_t size = settings.integer("width") / heads;
  if (size % 2 != 0) {
    return SettingComplaint{"heads",
                            fmt::format("expected model.width / model.heads to be even, found {}", size)};
  }
  if (heads % settings.integer("kv_heads") == 0) return std::nullopt;
  return SettingComplaint{"kv_heads", fmt::format("expected a divisor of model.heads, which is {}, found {}",
                                                  heads, settings.integer("kv_heads"))};
}

}  // namespace

Model make_llama(const LlamaOptions& options, int64_t block) {
  STRAIT_CHECK(options.width % options.heads == 0 && options.width / options.heads % 2 == 0,
               "{} heads of a width of {}", options.heads, options.width);
  STRAIT_CHECK(options.heads % options.kv_heads == 0, "{} heads, {} of keys", options.heads, options.kv_heads);
  STRAIT_CHECK(block >= 1 && block <= options.context, "{} tokens, {} at most", block, options.context);
  Model model;
  model.sample_shape = {block};
  const auto embed = std::make_shared<LlamaEmbed>(options);
  model.layers.push_back({"embed", "model", embed});
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = "layers." + std::to_string(i);
    model.layers.push_back({name, "model." + name, std::make_shared<LlamaBlock>(options)});
  }
  model.layers.push_back({"norm", "model", std::make_shared<LlamaNorm>(options)});
  auto matrix = options.tied ? std::make_shared<Matrix>(embed->matrix().detach().clone())
                             : drawn_matrix(options.vocab, options.width);
  model.layers.push_back({"head", "", std::make_shared<LlamaHead>(std::move(matrix))});
  if (options.tied) model.ties = {{"model.embed_tokens.weight", "lm_head.weight"}};
  model.file_extras = {".rotary_emb.inv_freq"};  // the frequencies, in files of older versions
  return model;
}

ModelKind llama_kind() {
  const LlamaOptions initial;
  ModelKind kind;
  kind.name = "llama";
  kind.reads_tokens = true;
  kind.cuts = {"layers.7", "layers.14", "layers.22"};
  kind.keys = {
      {"width", initial.width, at_least(1), "width of the embedding"},
      layers_key(initial.layers, "blocks"),
      {"heads", initial.heads, at_least(1), "attention heads per block; divides model.width"},
      {"kv_heads", initial.kv_heads, at_least(1), "heads of keys and values; divides model.heads"},
      {"hidden", initial.hidden, at_least(1), "width of the perceptron in a block"},
      {"context", initial.context, at_least(2), "the most tokens of a sample"},
      {"vocab", initial.vocab, at_least(1), "tokens that have an embedding"},
      {"theta", initial.theta, positive(), "base of the rotary frequencies"},
      {"eps", initial.eps, positive(), "added to the mean of squares in norms"},
      {"tied", initial.tied, yes_or_no(), "the head's matrix is the embedding's"},
      init_key(),
      recompute_key(),
  };
  kind.complaint = llama_complaint;
  kind.published = [](const Settings& settings) -> SettingList {
    const SettingValue theta = settings.number("theta");
    return {{"/model_type", "llama"},
            {"/num_attention_heads", settings.integer("heads")},
            {"/hidden_act", "silu"},
            {"/rms_norm_eps", settings.number("eps")},
            {"/rope_theta", theta},
            {"/rope_scaling/type", "default"},
            {"/rope_scaling/rope_type", "default"},
            {"/rope_parameters/rope_theta", theta},  // newer versions have all that is rotary in this table
            {"/rope_parameters/rope_type", "default"}};
  };
  kind.parameters = [](const Settings& settings, const SampleForm&) {
    const auto number = [&](const char* key) { return static_cast<double>(settings.integer(key)); };
    const double width = number("width");
    const double kv_width = width / number("heads") * number("kv_heads");
    const double block = width * (2 * width + 2 * kv_width + 3 * number("hidden") + 2);
    return number("layers") * block + (2 * number("vocab") + 1) * width;
  };
  kind.make = [](const Settings& settings, const SampleForm& samples) {
    return make_llama({.width = settings.integer("width"),
                       .layers = settings.integer("layers"),
                       .heads = settings.integer("heads"),
                       .kv_heads = settings.integer("kv_heads"),
                       .hidden = settings.integer("hidden"),
                       .context = settings.integer("context"),
                       .vocab = settings.integer("vocab"),
                       .theta = settings.number("theta"),
                       .eps = settings.number("eps"),
                       .tied = settings.flag("tied"),
                       .recompute = settings.flag("recompute")},
                      samples.shape[0]);
  };
  return kind;
}

}  // namespace strait
