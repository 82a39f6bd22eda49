#include "strait/models/gpt2.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/models/attention.h"
#include "strait/models/decoder_block.h"
#include "strait/models/decoder_keys.h"
#include "strait/models/dropout.h"
#include "strait/models/layer.h"
#include "strait/models/matrix.h"
#include "strait/models/subspace.h"

namespace strait {
namespace {

namespace nn = torch::nn;

constexpr double kDeviation = 0.02;  // of initial weights
constexpr double kNormEps = 1e-5;

/// Places of dropouts (DropoutRng::place): the embedding's, then three of each block.
constexpr uint64_t kEmbeddingPlace = 0;
constexpr uint64_t kBlockPlaces = 3;
uint64_t first_place_of(uint64_t block) { return kEmbeddingPlace + 1 + block * kBlockPlaces; }

at::Tensor drawn(at::IntArrayRef shape, double deviation = kDeviation) {
  return torch::empty(shape).normal_(0, deviation);
}

nn::LayerNorm layer_norm(int64_t width) { return nn::LayerNorm(nn::LayerNormOptions({width}).eps(kNormEps)); }

/// A linear layer whose weight is [in, out].
class Projection : public nn::Module {
 public:
  Projection(int64_t in, int64_t out, double deviation = kDeviation)
      : weight_(register_parameter("weight", drawn({in, out}, deviation))),
        bias_(register_parameter("bias", torch::zeros({out}))) {}

  at::Tensor forward(const at::Tensor& x) const {
    return at::addmm(bias_, x.flatten(0, 1), weight_).view({x.size(0), x.size(1), -1});
  }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

/// Numbers of a token that layers hand on: the residual stream, or its coordinates in a subspace.
int64_t stream_width(const Gpt2Options& options) {
  return options.subspace > 0 ? options.subspace : options.width;
}

/// Where layers find the residual stream in what is handed on.
class Stream {
 public:
  /// All of it is handed on.
  Stream() = default;

  /// Its coordinates in a subspace are, which needs the options' tables.
  explicit Stream(const Gpt2Options& options)
      : tables_(std::make_shared<SubspaceTables>(options.width, options.subspace, options.vocab, kDeviation)),
        seed_(torch::randint(int64_t{1} << 48, {1}, at::kLong).item<int64_t>()) {}

  /// What a layer needs to read it; null where it needs nothing.
  std::shared_ptr<Subspace> reader() const {
    return tables_ ? std::make_shared<Subspace>(tables_, seed_) : nullptr;
  }

 private:
  std::shared_ptr<SubspaceTables> tables_;
  int64_t seed_ = 0;
};

/// What leads back to the residual stream begins smaller, for there are two of it in every block.
double residual_deviation(const Gpt2Options& options) {
  return kDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
}

class Attention : public nn::Module {
 public:
  Attention(const Gpt2Options& options, uint64_t place)
      : input_(register_module("c_attn", std::make_shared<Projection>(options.width, 3 * options.width))),
        output_(register_module("c_proj", std::make_shared<Projection>(options.width, stream_width(options),
                                                                       residual_deviation(options)))),
        heads_(options.heads),
        dropout_(options.dropout),
        place_(place) {}

  at::Tensor forward(const at::Tensor& x) const {
    const auto parts = input_->forward(x)
                           .view({x.size(0), x.size(1), 3, heads_, -1})
                           .permute({2, 0, 3, 1, 4})
                           .contiguous()
                           .unbind(0);
    const at::Tensor y = causal_attention(parts[0], parts[1], parts[2], is_training() ? dropout_ : 0, place_);
    return output_->forward(y.transpose(1, 2).flatten(2));
  }

 private:
  std::shared_ptr<Projection> input_;
  std::shared_ptr<Projection> output_;
  int64_t heads_;
  double dropout_;
  uint64_t place_;
};

class Perceptron : public nn::Module {
 public:
  explicit Perceptron(const Gpt2Options& options)
      : input_(register_module("c_fc", std::make_shared<Projection>(options.width, 4 * options.width))),
        output_(register_module("c_proj", std::make_shared<Projection>(4 * options.width, stream_width(options),
                                                                       residual_deviation(options)))) {}

  at::Tensor forward(const at::Tensor& x) const {
    return output_->forward(at::gelu(input_->forward(x), "tanh"));
  }

 private:
  std::shared_ptr<Projection> input_;
  std::shared_ptr<Projection> output_;
};

class Embed : public Layer {
 public:
  explicit Embed(const Gpt2Options& options)
      : tokens_(
            register_module("wte", std::make_shared<Matrix>(drawn({options.vocab, stream_width(options)})))),
        positions_(
            register_module("wpe", std::make_shared<Matrix>(drawn({options.context, stream_width(options)})))),
        dropout_(options.dropout) {}

  at::Tensor forward(const at::Tensor& x) override {
    STRAIT_CHECK(x.size(1) <= positions_->weight().size(0), "{} tokens, {} positions", x.size(1),
                 positions_->weight().size(0));
    const at::Tensor y = embedded(tokens_->weight(), x) + positions_->weight().narrow(0, 0, x.size(1));
    return dropout(y, is_training() ? dropout_ : 0, kEmbeddingPlace);
  }

  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) override {
    return {sample[0], tokens_->weight().size(1)};
  }

  const at::Tensor& matrix() const { return tokens_->weight(); }

 private:
  std::shared_ptr<Matrix> tokens_;
  std::shared_ptr<Matrix> positions_;
  double dropout_;
};

class Block : public DecoderBlock {
 public:
  Block(const Gpt2Options& options, uint64_t first_place, const Stream& stream)
      : DecoderBlock(options.recompute),
        norm1_(register_module("ln_1", layer_norm(options.width))),
        attention_(register_module("attn", std::make_shared<Attention>(options, first_place))),
        norm2_(register_module("ln_2", layer_norm(options.width))),
        perceptron_(register_module("mlp", std::make_shared<Perceptron>(options))),
        subspace_(stream.reader()),
        first_place_(first_place),
        dropout_(options.dropout) {
    if (subspace_) register_module("subspace", subspace_);
  }

 private:
  at::Tensor run(const at::Tensor& x, const at::Tensor& tokens) override {
    const auto stream = [&](const at::Tensor& z) { return subspace_ ? subspace_->stream(z, tokens) : z; };
    const double probability = is_training() ? dropout_ : 0;  // the first place is of the attention weights
    const at::Tensor y = x + dropout(attention_->forward(norm1_(stream(x))), probability, first_place_ + 1);
    return y + dropout(perceptron_->forward(norm2_(stream(y))), probability, first_place_ + 2);
  }

  nn::LayerNorm norm1_;
  std::shared_ptr<Attention> attention_;
  nn::LayerNorm norm2_;
  std::shared_ptr<Perceptron> perceptron_;
  std::shared_ptr<Subspace> subspace_;  ///< null where the whole stream is handed on
  uint64_t first_place_;
  double dropout_;
};

class TokenHead : public Layer {
 public:
  TokenHead(const at::Tensor& matrix, const Stream& stream)
      : norm_(register_module("ln_f", layer_norm(matrix.size(1)))),
        matrix_(register_module("lm_head", std::make_shared<Matrix>(matrix))),
        subspace_(stream.reader()) {
    if (subspace_) register_module("subspace", subspace_);
  }

  at::Tensor forward(const at::Tensor& x) override { return at::linear(norm_(x), matrix_->weight()); }
  at::Tensor forward_with(const at::Tensor& z, const at::Tensor& tokens) override {
    return forward(subspace_->stream(z, tokens));
  }

 private:
  nn::LayerNorm norm_;
  std::shared_ptr<Matrix> matrix_;
  std::shared_ptr<Subspace> subspace_;  ///< null where the whole stream is handed on
};

std::optional<SettingComplaint> gpt2_complaint(const Settings& settings, const SampleForm& samples) {
  const int64_t subspace = settings.integer("subspace");
  const int64_t width = settings.integer("width");
  if (subspace >= width) {
    return SettingComplaint{
        "subspace", fmt::format("expected less than model.width, which is {}, found {}", width, subspace)};
  }
  if (auto complaint = heads_complaint(settings)) return complaint;
  return context_complaint(settings, samples);
}

/// What a config.json of Hugging Face says.
void read_gpt2_config(PublishedConfig& file) {
  file.expect("model_type", {"gpt2"});
  file.expect("activation_function", {"gelu_new", "gelu_pytorch_tanh"});  // the same function
  file.expect("layer_norm_epsilon", {kNormEps});
  file.expect("scale_attn_weights", {true});
  file.expect("scale_attn_by_inverse_layer_idx", {false});
  file.expect("is_causal", {true});
  file.take("n_embd", "width");
  file.take("n_layer", "layers");
  file.take("n_head", "heads");
  file.take("n_positions", "context");
  // transformers' common names of the same, which go before these.
  file.take("hidden_size", "width");
  file.take("num_hidden_layers", "layers");
  file.take("num_attention_heads", "heads");
  file.take("max_position_embeddings", "context");
  file.take("vocab_size", "vocab");
}

/// What read_gpt2_config() reads. A network in a subspace is none of transformers'.
nlohmann::json gpt2_config(const Settings& settings) {
  if (settings.integer("subspace") > 0) return {};
  nlohmann::json file = {{"architectures", nlohmann::json::array({"GPT2LMHeadModel"})},
                         {"model_type", "gpt2"},
                         {"n_embd", settings.integer("width")},
                         {"n_inner", nullptr},
                         {"n_layer", settings.integer("layers")},
                         {"n_head", settings.integer("heads")},
                         {"n_positions", settings.integer("context")},
                         {"vocab_size", settings.integer("vocab")},
                         {"layer_norm_epsilon", kNormEps},
                         {"tie_word_embeddings", true},
                         {"dtype", "float32"},
                         {"torch_dtype", nullptr}};
  for (const char* share : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
    file[share] = settings.number("dropout");
  return file;
}

}  // namespace

Model make_gpt2(const Gpt2Options& options, int64_t block) {
  STRAIT_CHECK(options.width % options.heads == 0, "{} heads of a width of {}", options.heads, options.width);
  STRAIT_CHECK(options.subspace >= 0 && options.subspace < options.width, "{} of {} dimensions",
               options.subspace, options.width);
  STRAIT_CHECK(block >= 1 && block <= options.context, "{} tokens, {} positions", block, options.context);
  Model model;
  model.sample_shape = {block};
  const bool narrow = options.subspace > 0;
  const Stream stream = narrow ? Stream(options) : Stream();
  const auto embed = std::make_shared<Embed>(options);
  model.layers.push_back({"embed", "", embed});
  for (int64_t i = 0; i < options.layers; ++i) {
    const std::string name = "h." + std::to_string(i);
    const uint64_t first_place = first_place_of(static_cast<uint64_t>(i));
    model.layers.push_back({name, name, std::make_shared<Block>(options, first_place, stream)});
  }
  const at::Tensor matrix = narrow ? drawn({options.vocab, options.width}) : embed->matrix().detach().clone();
  model.layers.push_back({"head", "", std::make_shared<TokenHead>(matrix, stream)});
  if (narrow) {
    model.passed_below = options.vocab;
  } else {
    model.ties = {{"wte.weight", "lm_head.weight"}};
  }
  model.file_prefix = "transformer.";
  model.file_extras = {".attn.bias", ".attn.masked_bias"};  // the causal mask
  return model;
}

ModelKind gpt2_kind() {
  const Gpt2Options initial;
  ModelKind kind;
  kind.name = "gpt2";
  kind.reads_tokens = true;
  kind.cuts = {"h.2", "h.5", "h.8"};
  kind.keys = {
      {"width", initial.width, at_least(1), "width of the embedding"},
      layers_key(initial.layers, "blocks"),
      {"heads", initial.heads, at_least(1), "attention heads per block; divides model.width"},
      {"context", initial.context, at_least(2), "positions that have an embedding"},
      {"vocab", initial.vocab, at_least(1), "tokens that have an embedding"},
      {"dropout", initial.dropout, below_one(),
       "share of embeddings, attention weights and residual branches that is dropped"},
      init_key(),
      recompute_key(),
      {"subspace", initial.subspace, at_least(0),
       "dimensions of the subspace in which the residual stream lies, and of what crosses a cut; 0: all"},
  };
  kind.complaint = gpt2_complaint;
  kind.published = read_gpt2_config;
  kind.publish = gpt2_config;
  kind.parameters = [](const Settings& settings, const SampleForm&) {
    const auto number = [&](const char* key) { return static_cast<double>(settings.integer(key)); };
    const double width = number("width");
    const double stream = settings.integer("subspace") > 0 ? number("subspace") : width;
    const double block = 7 * width * width + 5 * width * stream + 11 * width + 2 * stream;
    return number("layers") * block + (number("vocab") + number("context")) * stream +
           (number("vocab") + 2) * width;
  };
  kind.make = [](const Settings& settings, const SampleForm& samples) {
    return make_gpt2({.width = settings.integer("width"),
                      .layers = settings.integer("layers"),
                      .heads = settings.integer("heads"),
                      .context = settings.integer("context"),
                      .vocab = settings.integer("vocab"),
                      .dropout = settings.number("dropout"),
                      .recompute = settings.flag("recompute"),
                      .subspace = settings.integer("subspace")},
                     samples.shape[0]);
  };
  return kind;
}

}  // namespace strait
