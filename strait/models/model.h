#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strait/base/named_tensors.h"
#include "strait/base/sample_form.h"
#include "strait/models/options.h"

namespace strait {

class Layer;  // strait/models/layer.h

/// A layer under the name by which it is cut, and the prefix of its parameters' names in a file (empty:
/// they stand at the top).
struct NamedLayer {
  std::string name;              ///< such as `layer1.0`
  std::string prefix;            ///< before its parameters' names, without a dot; empty: they stand at the top
  std::shared_ptr<Layer> layer;  ///< may be shared by models
  bool added = false;            ///< no part of the network that others know: a file to start from may lack it
};

/// Layers [begin, end) of the network.
struct LayerRange {
  size_t begin;  ///< of the first layer
  size_t end;    ///< behind the last
};

/// A network as the list of its layers. Initialised as PyTorch does, from LibTorch's global generator.
struct Model {
  std::vector<NamedLayer> layers;     ///< from input to output
  std::vector<int64_t> sample_shape;  ///< of the input, without the batch dimension

  /// Pairs of parameters, by name, that are one and the same: equal at all times, with one gradient, the sum.
  /// A file has the first one, and may have the second.
  std::vector<std::pair<std::string, std::string>> ties = {};

  /// Above 0 for a network that passes its input on, integers from 0 to below this number: every layer but the
  /// first gets it too (Layer::forward_with()), so that it crosses every cut beside what the layers give.
  int64_t passed_below = 0;

  // What other programs' files of such a network may have besides.
  std::string file_prefix = {};               ///< before names
  std::vector<std::string> file_extras = {};  ///< tensors that are no weights, by the ends of their names

  /// Parameters and buffers in layer order, under PyTorch's names; the tensors share memory with the model.
  NamedTensors state() const;

  /// The parameters under the same names, in layer order.
  NamedTensors named_parameters() const;

  /// The parameters, in layer order.
  std::vector<at::Tensor> parameters() const;

  /// The layers of one range, shared with this model, without ties.
  Model part(const LayerRange& range) const;

  /// Sets all layers to training or to evaluation mode, as torch.nn.Module.train() does.
  void train(bool on);

  /// Moves all parameters and buffers.
  void to(const at::Device& device);

  /// Runs the layers [begin, end), which form a stage, on what crosses to it, and gives what crosses from it: a
  /// tensor, and the network's input besides where it is passed on.
  std::vector<at::Tensor> run(std::vector<at::Tensor> x, size_t begin, size_t end) const;

  /// Runs the layers [begin, end); from the first one on in a network that passes its input on.
  at::Tensor forward(const at::Tensor& x, size_t begin, size_t end) const {
    return run({x}, begin, end).front();
  }
};

/// The stages between the cuts. A cut is the name of a layer, or of a group (`layer1` for `layer1.0` and
/// `layer1.1`), after which a stage ends. Throws InputError for an unknown name, for cuts out of order and
/// for a cut after the last layer.
std::vector<LayerRange> cut_into_stages(const Model& model, const std::vector<std::string>& cuts);

/// The shape of one sample at the end of each stage but the last, without the network's input.
std::vector<std::vector<int64_t>> boundary_shapes(Model& model, const std::vector<LayerRange>& stages);

/// Builds the network that the options describe, for such samples; it may have layers at the cuts of the
/// options (add_bottlenecks()). Throws InputError for options that do not go together with one another or with
/// the samples, and for a network that free memory has no room for.
Model make_model(const ModelOptions& options, const SampleForm& samples);

}  // namespace strait
