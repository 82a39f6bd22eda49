#include "strait/models/model.h"

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/models/layer.h"

namespace strait {
namespace {

std::string join(const std::string& prefix, const std::string& name) {
  return prefix.empty() ? name : prefix + "." + name;
}

void append(NamedTensors& tensors, const std::string& prefix,
            const torch::OrderedDict<std::string, at::Tensor>& items) {
  for (const auto& item : items) tensors.emplace_back(join(prefix, item.key()), item.value());
}

bool names_layer(const std::string& cut, const std::string& layer) {
  return layer == cut || layer.starts_with(cut + ".");
}

/// What a person may write as a cut: layers and groups.
std::vector<std::string> cut_names(const Model& model) {
  std::vector<std::string> names;
  for (const auto& layer : model.layers) {
    const std::string group = layer.name.substr(0, layer.name.find('.'));
    for (const auto& name : {group, layer.name}) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  return names;
}

}  // namespace

std::vector<int64_t> Layer::output_shape(const std::vector<int64_t>& sample) {
  const auto own = parameters();
  std::vector<int64_t> shape = sample;
  shape.insert(shape.begin(), 1);
  return forward(at::zeros(shape, own.empty() ? at::TensorOptions() : own.front().options()))
      .sizes()
      .slice(1)
      .vec();
}

NamedTensors Model::state() const {
  NamedTensors tensors;
  for (const NamedLayer& named : layers) {
    append(tensors, named.prefix, named.layer->named_parameters());
    append(tensors, named.prefix, named.layer->named_buffers());
  }
  return tensors;
}

NamedTensors Model::named_parameters() const {
  NamedTensors tensors;
  for (const NamedLayer& named : layers) append(tensors, named.prefix, named.layer->named_parameters());
  return tensors;
}

std::vector<at::Tensor> Model::parameters() const {
  std::vector<at::Tensor> all;
  for (auto& [name, parameter] : named_parameters()) all.push_back(std::move(parameter));
  return all;
}

Model Model::part(const LayerRange& range) const {
  Model some{{}, sample_shape};
  some.passed_below = passed_below;
  some.layers.assign(layers.begin() + static_cast<ptrdiff_t>(range.begin),
                     layers.begin() + static_cast<ptrdiff_t>(range.end));
  return some;
}

void Model::train(bool on) {
  for (const auto& layer : layers) layer.layer->train(on);
}

void Model::to(const at::Device& device) {
  for (const auto& layer : layers) layer.layer->to(device);
}

std::vector<at::Tensor> Model::run(std::vector<at::Tensor> x, size_t begin, size_t end) const {
  const bool passes = passed_below > 0;
  STRAIT_CHECK(x.size() == (passes && begin > 0 ? 2U : 1U), "{} tensors for the layers from {} on", x.size(),
               begin);
  const at::Tensor input = passes ? x.back() : at::Tensor();
  at::Tensor y = std::move(x.front());
  x.clear();
  for (size_t i = begin; i < end; ++i) {
    Layer& layer = *layers[i].layer;
    y = passes && i > 0 ? layer.forward_with(y, input) : layer.forward(y);
  }
  if (!passes || end == layers.size()) return {y};
  return {y, input};
}

std::vector<LayerRange> cut_into_stages(const Model& model, const std::vector<std::string>& cuts) {
  std::vector<LayerRange> stages;
  size_t begin = 0;
  for (const auto& cut : cuts) {
    size_t end = 0;
    for (size_t i = 0; i < model.layers.size(); ++i) {
      if (names_layer(cut, model.layers[i].name)) end = i + 1;
    }
    if (end == 0) {
      const auto names = cut_names(model);
      throw InputError("model.cuts: there is no layer \"{}\"{}; expected names among: {}", cut,
                       suggestion(cut, names), list_of(names));
    }
    if (end <= begin) throw InputError("model.cuts: \"{}\" does not come after the cut before it", cut);
    if (end == model.layers.size()) throw InputError("model.cuts: nothing comes after \"{}\"", cut);
    stages.push_back({begin, end});
    begin = end;
  }
  stages.push_back({begin, model.layers.size()});
  return stages;
}

std::vector<std::vector<int64_t>> boundary_shapes(Model& model, const std::vector<LayerRange>& stages) {
  const torch::NoGradGuard no_grad;
  model.train(false);
  std::vector<int64_t> shape = model.sample_shape;
  std::vector<std::vector<int64_t>> shapes;
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    for (size_t layer = stages[i].begin; layer < stages[i].end; ++layer) {
      shape = model.layers[layer].layer->output_shape(shape);
    }
    shapes.push_back(shape);
  }
  model.train(true);
  return shapes;
}

}  // namespace strait
