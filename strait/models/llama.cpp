#include "strait/models/llama.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <numbers>

#include "strait/base/error.h"
#include "strait/models/attention.h"
#include "strait/models/decoder_block.h"
#include "strait/models/decoder_keys.h"
#include "strait/models/layer.h"
#include "strait/models/matrix.h"

namespace strait {
namespace {

namespace nn = torch::nn;

/// The numbers of a matrix as Hugging Face draws them.
at::Tensor drawn(int64_t out, int64_t in) {
  constexpr double kDeviation = 0.02;
  return torch::empty({out, in}).normal_(0, kDeviation);
}

int64_t head_size_of(const LlamaOptions& options) {
  return options.head_size > 0 ? options.head_size : options.width / options.heads;
}

/// x W^T + b, or x W^T alone. The bias b begins with zeros.
class LlamaLinear : public nn::Module {
 public:
  explicit LlamaLinear(at::Tensor weight, bool has_bias = false)
      : weight_(register_parameter("weight", std::move(weight))) {
    if (has_bias) bias_ = register_parameter("bias", torch::zeros({weight_.size(0)}));
  }

  at::Tensor forward(const at::Tensor& x) const { return at::linear(x, weight_, bias_); }

 private:
  at::Tensor weight_;
  at::Tensor bias_;
};

std::shared_ptr<LlamaLinear> drawn_linear(int64_t out, int64_t in, bool has_bias = false) {
  return std::make_shared<LlamaLinear>(drawn(out, in), has_bias);
}

/// x / sqrt(mean(x^2) + eps) * weight, over the last dimension, in float32.
class RootMeanSquareNorm : public nn::Module {
 public:
  RootMeanSquareNorm(int64_t width, double eps)
      : weight_(register_parameter("weight", torch::ones({width}))), eps_(eps) {}

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor wide = x.to(at::kFloat);
    return weight_ * (wide * (wide.square().mean(-1, /*keepdim=*/true) + eps_).rsqrt());
  }

 private:
  at::Tensor weight_;
  double eps_;
};

/// The rotary frequencies theta^(-2i/D) of a head of D numbers, scaled; [D/2], in radians a token.
at::Tensor frequencies_of(const LlamaOptions& options, const at::TensorOptions& numbers) {
  const int64_t half = head_size_of(options) / 2;
  const at::Tensor exponents = at::arange(half, numbers) * (-1.0 / static_cast<double>(half));
  at::Tensor frequencies = at::pow(options.theta, exponents);
  const auto& [factor, low, high, context] = options.scaling;
  if (factor == 1) return frequencies;
  const at::Tensor turns = frequencies * (static_cast<double>(context) / (2 * std::numbers::pi));
  const at::Tensor kept = ((turns - low) / (high - low)).clamp(0, 1);
  return frequencies * (kept + (1 - kept) / factor);
}

/// Turns the pairs (i, i + D/2) of each head's D elements by position * frequency: x is [B, H, T, D].
at::Tensor rotated(const at::Tensor& x, const LlamaOptions& options) {
  const int64_t half = x.size(3) / 2;
  const auto numbers = x.options().dtype(at::kFloat).requires_grad(false);
  const at::Tensor angles = at::arange(x.size(2), numbers).unsqueeze(1) * frequencies_of(options, numbers);
  const at::Tensor cosine = angles.cos();
  const at::Tensor sine = angles.sin();
  const at::Tensor first = x.narrow(3, 0, half);
  const at::Tensor second = x.narrow(3, half, half);
  return at::cat({first * cosine - second * sine, second * cosine + first * sine}, 3).to(x.scalar_type());
}

class GroupedAttention : public nn::Module {
 public:
  explicit GroupedAttention(const LlamaOptions& options)
      : options_(options),
        q_(projection("q_proj", options.heads)),
        k_(projection("k_proj", options.kv_heads)),
        v_(projection("v_proj", options.kv_heads)),
        output_(register_module("o_proj", drawn_linear(options.width, options.heads * head_size_of(options)))),
        q_norm_(norm("q_norm")),
        k_norm_(norm("k_norm")) {}

  at::Tensor forward(const at::Tensor& x) const {
    const at::Tensor q = turned(heads_of(*q_, x), q_norm_);
    const at::Tensor k = turned(heads_of(*k_, x), k_norm_);
    const at::Tensor v = heads_of(*v_, x);
    const at::Tensor seen = causal_attention(q, for_all_heads(k), for_all_heads(v));
    return output_->forward(seen.transpose(1, 2).flatten(2));
  }

 private:
  std::shared_ptr<LlamaLinear> projection(const char* name, int64_t heads) {
    const int64_t out = heads * head_size_of(options_);
    return register_module(name, drawn_linear(out, options_.width, options_.qkv_bias));
  }

  /// Null where there is none.
  std::shared_ptr<RootMeanSquareNorm> norm(const char* name) {
    if (!options_.qk_norm) return nullptr;
    return register_module(name, std::make_shared<RootMeanSquareNorm>(head_size_of(options_), options_.eps));
  }

  /// Of [B, T, width] gives [B, H, T, D].
  at::Tensor heads_of(const LlamaLinear& projection, const at::Tensor& x) const {
    return projection.forward(x).view({x.size(0), x.size(1), -1, head_size_of(options_)}).transpose(1, 2);
  }

  /// Of the type of `heads`, as the values are: under autocast the norm gives float32.
  at::Tensor turned(const at::Tensor& heads, const std::shared_ptr<RootMeanSquareNorm>& norm) const {
    return rotated(norm ? norm->forward(heads).to(heads.scalar_type()) : heads, options_);
  }

  /// Each head of keys or values serves heads / kv_heads of the queries that follow each other.
  at::Tensor for_all_heads(const at::Tensor& x) const {
    const int64_t each = options_.heads / options_.kv_heads;
    return each == 1 ? x.contiguous() : x.repeat_interleave(each, 1);
  }

  LlamaOptions options_;
  std::shared_ptr<LlamaLinear> q_;
  std::shared_ptr<LlamaLinear> k_;
  std::shared_ptr<LlamaLinear> v_;
  std::shared_ptr<LlamaLinear> output_;
  std::shared_ptr<RootMeanSquareNorm> q_norm_;
  std::shared_ptr<RootMeanSquareNorm> k_norm_;
};

/// down(silu(gate(x)) * up(x)).
class GatedPerceptron : public nn::Module {
 public:
  explicit GatedPerceptron(const LlamaOptions& options)
      : gate_(register_module("gate_proj", drawn_linear(options.hidden, options.width))),
        up_(register_module("up_proj", drawn_linear(options.hidden, options.width))),
        down_(register_module("down_proj", drawn_linear(options.width, options.hidden))) {}

  at::Tensor forward(const at::Tensor& x) const {
    return down_->forward(at::silu(gate_->forward(x)) * up_->forward(x));
  }

 private:
  std::shared_ptr<LlamaLinear> gate_;
  std::shared_ptr<LlamaLinear> up_;
  std::shared_ptr<LlamaLinear> down_;
};

class LlamaEmbed : public Layer {
 public:
  explicit LlamaEmbed(const LlamaOptions& options)
      : tokens_(
            register_module("embed_tokens", std::make_shared<Matrix>(drawn(options.vocab, options.width)))) {}

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
        norm1_(register_module("input_layernorm",
                               std::make_shared<RootMeanSquareNorm>(options.width, options.eps))),
        attention_(register_module("self_attn", std::make_shared<GroupedAttention>(options))),
        norm2_(register_module("post_attention_layernorm",
                               std::make_shared<RootMeanSquareNorm>(options.width, options.eps))),
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
      : norm_(register_module("norm", std::make_shared<RootMeanSquareNorm>(options.width, options.eps))) {}

  at::Tensor forward(const at::Tensor& x) override { return norm_->forward(x); }
  std::vector<int64_t> output_shape(const std::vector<int64_t>& sample) override { return sample; }

 private:
  std::shared_ptr<RootMeanSquareNorm> norm_;
};

class LlamaHead : public Layer {
 public:
  explicit LlamaHead(at::Tensor weight)
      : matrix_(register_module("lm_head", std::make_shared<LlamaLinear>(std::move(weight)))) {}

  at::Tensor forward(const at::Tensor& x) override { return matrix_->forward(x); }

 private:
  std::shared_ptr<LlamaLinear> matrix_;
};

/// Key by key, what the parts of attention need.
std::optional<SettingComplaint> llama_complaint(const Settings& settings, const SampleForm& samples) {
  const int64_t heads = settings.integer("heads");
  const int64_t width = settings.integer("width");
  const int64_t own_size = settings.integer("head_size");
  if (own_size % 2 != 0)
    return SettingComplaint{"head_size", fmt::format("expected an even number, found {}", own_size)};
  if (own_size == 0) {
    if (auto complaint = heads_complaint(settings)) return complaint;
    if (width / heads % 2 != 0) {
      return SettingComplaint{
          "heads", fmt::format("expected model.width / model.heads to be even, found {}", width / heads)};
    }
  }
  if (auto complaint = context_complaint(settings, samples)) return complaint;
  if (heads % settings.integer("kv_heads") != 0) {
    return SettingComplaint{"kv_heads", fmt::format("expected a divisor of model.heads, which is {}, found {}",
                                                    heads, settings.integer("kv_heads"))};
  }
  const double low = settings.number("rope_low");
  if (settings.number("rope_high") > low) return std::nullopt;
  return SettingComplaint{"rope_high", fmt::format("expected more than model.rope_low, which is {}, found {}",
                                                   low, settings.number("rope_high"))};
}

/// How a config.json scales the rotary frequencies, if at all. `table` has all that is rotary in newer files.
void read_scaling(PublishedConfig& file, const std::string& table) {
  const auto in_table = [&](const char* member) { return table + "/" + member; };
  const std::string older = in_table("type");
  const std::string newer = in_table("rope_type");
  for (const auto& place : {older, newer}) file.expect(place, {"default", "llama3"});
  file.expect(in_table("partial_rotary_factor"), {1.0});
  file.take(in_table("rope_theta"), "theta");
  const std::string& place = file.has(newer) ? newer : older;
  if (file.text(place) != "llama3") {
    if (file.has(place)) file.take(place, "rope_factor", 1.0, Decides::exactly);
    return;
  }
  file.take_needed(in_table("factor"), "rope_factor");
  file.take_needed(in_table("low_freq_factor"), "rope_low");
  file.take_needed(in_table("high_freq_factor"), "rope_high");
  file.take("max_position_embeddings", "rope_context");  // where neither of these says it
  file.take(in_table("original_max_position_embeddings"), "rope_context");
  file.take("original_max_position_embeddings", "rope_context");
}

/// What Hugging Face takes where a config.json of an architecture leaves a value out.
void take_initial_values(PublishedConfig& file, const std::string& type) {
  const auto take = [&](const char* key, SettingValue value, Decides decides = Decides::nothing) {
    file.take("model_type", key, std::move(value), decides);
  };
  take("qkv_bias", type == "qwen2", Decides::exactly);
  take("qk_norm", type == "qwen3", Decides::exactly);
  take("eps", 1e-6, Decides::exactly);
  take("theta", 10000.0, Decides::exactly);
  take("rope_factor", 1.0, Decides::exactly);
  take("tied", false);
  take("head_size", int64_t{type == "qwen3" ? 128 : 0});
  if (type != "llama" && !file.mentions("num_key_value_heads"))
    take("kv_heads", int64_t{type == "mistral" ? 8 : 32});
}

/// Of a Mistral every block has a window, of the others those of a file that says so.
void read_window(PublishedConfig& file, bool is_mistral) {
  constexpr int64_t kInitial = 4096;
  if (!is_mistral && !file.flag("use_sliding_window").value_or(false)) return;
  if (!file.mentions("sliding_window")) file.take("model_type", "context", kInitial, Decides::at_most);
  file.take("sliding_window", "context", Decides::at_most);
}

/// What a config.json of Hugging Face says, of the architectures that are a network of this kind. With a
/// sliding window a sample within it sees what it would without.
void read_llama_config(PublishedConfig& file) {
  file.expect("model_type", {"llama", "mistral", "qwen2", "qwen3"});
  file.expect("hidden_act", {"silu", "swish"});  // the same function
  file.expect("attention_bias", {false});
  file.expect("mlp_bias", {false});
  file.expect("partial_rotary_factor", {1.0});
  file.expect("is_causal", {true});
  const auto type = file.text("model_type");
  file.take("num_attention_heads", "kv_heads", Decides::nothing);
  if (type) take_initial_values(file, *type);
  file.take("hidden_size", "width");
  file.take("num_hidden_layers", "layers");
  file.take("num_attention_heads", "heads");
  file.take("num_key_value_heads", "kv_heads");
  file.take("head_dim", "head_size", Decides::nothing);
  file.take("intermediate_size", "hidden");
  file.take("max_position_embeddings", "context", Decides::nothing);
  file.take("vocab_size", "vocab");
  file.take("rms_norm_eps", "eps");
  file.take("tie_word_embeddings", "tied", Decides::nothing);
  file.take("rope_theta", "theta");
  const bool has_newer_table = file.has_members("rope_parameters");
  if (file.has_members("rope_scaling")) {
    read_scaling(file, "rope_scaling");  // the other one does not count then
  } else if (has_newer_table) {
    read_scaling(file, "rope_parameters");
  }
  read_window(file, type == "mistral");
}

/// How the rotary frequencies are scaled, in a config.json; null: not at all.
nlohmann::json scaling_of(const Settings& settings) {
  if (settings.number("rope_factor") == 1) return {};
  return {{"rope_type", "llama3"},
          {"factor", settings.number("rope_factor")},
          {"low_freq_factor", settings.number("rope_low")},
          {"high_freq_factor", settings.number("rope_high")},
          {"original_max_position_embeddings", settings.integer("rope_context")}};
}

/// What read_llama_config() reads. No architecture has both biases and norms of queries and keys, and these
/// alone, and that of a network with neither refuses heads that do not divide the width.
nlohmann::json llama_config(const Settings& settings) {
  const bool has_biases = settings.flag("qkv_bias");
  const bool has_norms = settings.flag("qk_norm");
  const bool is_plain = !has_biases && !has_norms;
  if ((has_biases && has_norms) || (is_plain && heads_complaint(settings))) return {};
  const std::string type = has_norms ? "qwen3" : has_biases ? "qwen2" : "llama";
  const std::string name = has_norms ? "Qwen3" : has_biases ? "Qwen2" : "Llama";
  const int64_t heads = settings.integer("heads");
  const int64_t own_size = settings.integer("head_size");
  return {{"architectures", nlohmann::json::array({name + "ForCausalLM"})},
          {"model_type", type},
          {"hidden_size", settings.integer("width")},
          {"num_hidden_layers", settings.integer("layers")},
          {"num_attention_heads", heads},
          {"num_key_value_heads", settings.integer("kv_heads")},
          {"head_dim", own_size > 0 ? own_size : settings.integer("width") / heads},
          {"intermediate_size", settings.integer("hidden")},
          {"max_position_embeddings", settings.integer("context")},
          {"vocab_size", settings.integer("vocab")},
          {"rms_norm_eps", settings.number("eps")},
          {"tie_word_embeddings", settings.flag("tied")},
          {"rope_theta", settings.number("theta")},
          {"rope_scaling", scaling_of(settings)},
          {"rope_parameters", nullptr},  // a newer name of both
          {"dtype", "float32"},
          {"torch_dtype", nullptr}};  // an older name of it
}

/// How many weights a network of these settings has.
double llama_parameters(const Settings& settings, const SampleForm& /*samples*/) {
  const auto number = [&](const char* key) { return static_cast<double>(settings.integer(key)); };
  const double width = number("width");
  const double size = number("head_size") > 0 ? number("head_size") : width / number("heads");
  const double both = size * 2 * (number("heads") + number("kv_heads"));  // ways through attention's matrices
  const double biases = settings.flag("qkv_bias") ? both - size * number("heads") : 0;
  const double norms = settings.flag("qk_norm") ? 2 * size : 0;
  const double block = width * (both + 3 * number("hidden") + 2) + biases + norms;
  return number("layers") * block + (2 * number("vocab") + 1) * width;
}

LlamaOptions llama_options(const Settings& settings) {
  return {.width = settings.integer("width"),
          .layers = settings.integer("layers"),
          .heads = settings.integer("heads"),
          .kv_heads = settings.integer("kv_heads"),
          .hidden = settings.integer("hidden"),
          .context = settings.integer("context"),
          .vocab = settings.integer("vocab"),
          .theta = settings.number("theta"),
          .eps = settings.number("eps"),
          .tied = settings.flag("tied"),
          .recompute = settings.flag("recompute"),
          .head_size = settings.integer("head_size"),
          .qkv_bias = settings.flag("qkv_bias"),
          .qk_norm = settings.flag("qk_norm"),
          .scaling = {.factor = settings.number("rope_factor"),
                      .low = settings.number("rope_low"),
                      .high = settings.number("rope_high"),
                      .context = settings.integer("rope_context")}};
}

}  // namespace

Model make_llama(const LlamaOptions& options, int64_t block) {
  STRAIT_CHECK(head_size_of(options) % 2 == 0, "{} numbers of a head", head_size_of(options));
  STRAIT_CHECK(options.head_size > 0 || options.width % options.heads == 0, "{} heads of a width of {}",
               options.heads, options.width);
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
  const at::Tensor matrix =
      options.tied ? embed->matrix().detach().clone() : drawn(options.vocab, options.width);
  model.layers.push_back({"head", "", std::make_shared<LlamaHead>(matrix)});
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
      {"head_size", initial.head_size, at_least(0), "numbers of a head; 0: model.width / model.heads"},
      {"qkv_bias", initial.qkv_bias, yes_or_no(), "queries, keys and values have biases, as in Qwen2"},
      {"qk_norm", initial.qk_norm, yes_or_no(), "queries and keys of each head are normalised, as in Qwen3"},
      {"rope_factor", initial.scaling.factor, positive(),
       "that slow rotary frequencies are divided by, as in Llama 3.1; 1: none is"},
      {"rope_low", initial.scaling.low, positive(),
       "turns of the fastest frequency that is divided as a whole"},
      {"rope_high", initial.scaling.high, positive(), "turns of the slowest frequency that is kept as it is"},
      {"rope_context", initial.scaling.context, at_least(1), "tokens within which turns are counted"},
      init_key(),
      recompute_key(),
  };
  kind.complaint = llama_complaint;
  kind.published = read_llama_config;
  kind.publish = llama_config;
  kind.parameters = llama_parameters;
  kind.make = [](const Settings& settings, const SampleForm& samples) {
    return make_llama(llama_options(settings), samples.shape[0]);
  };
  return kind;
}

}  // namespace strait
