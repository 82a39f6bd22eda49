#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace strait {

/// The [data] table of a configuration.
struct DataOptions {
  std::string kind = "cifar10";  ///< one of data_kinds()
  std::string root;              ///< the folder that holds cifar-10-batches-bin/, wikitext-2-raw/, gpt2/
  int64_t train_limit = 0;       ///< first N training samples; 0 = all
  int64_t test_limit = 0;        ///< first N test samples; 0 = all
  int64_t batch_size = 100;      ///< samples per batch, over all replicas

  // Of text.
  int64_t block = 1024;                          ///< tokens per sample
  std::string tokenizer = {};                    ///< folder of its files; empty: gpt2/ under root
  std::vector<double> train_range = {0.0, 1.0};  ///< share of the training text, cut at articles or lines
  std::string train_file = {};                   ///< text: the training text
  std::string test_file = {};                    ///< text: the test text

  bool operator==(const DataOptions&) const = default;
};

/// The samples of one batch, B of them.
struct Batch {
  at::Tensor inputs;         ///< [B, 3, 32, 32] float32, normalised; of text [B, block] int64, tokens
  at::Tensor targets;        ///< [B] int64, class labels; of text the inputs
  std::vector<int64_t> ids;  ///< B indices into the data set
};

/// Samples that are known by their index from 0. Immutable, so that threads may share one.
class Dataset {
 public:
  virtual ~Dataset() = default;

  /// How many samples there are.
  virtual int64_t size() const = 0;

  /// The samples `ids`, in that order. With a key, each is augmented by draws that depend on the key and
  /// the sample's id only; without one they come as they are.
  virtual Batch batch(std::span<const int64_t> ids, std::optional<uint64_t> augmentation_key) const = 0;
};

/// What a run trains and is tested with.
struct DataSplits {
  std::shared_ptr<const Dataset> train;  ///< the training set
  std::shared_ptr<const Dataset> test;   ///< the test set
  int64_t vocab = 0;  ///< of text: how many tokens the tokenizer has; every token is below it
};

/// Loads or draws the training and test set.
/// Throws InputError that names the file, what was expected and what was found.
DataSplits load_data(const DataOptions& options);

/// The order in which an epoch visits `size` samples: a permutation that depends on seed and epoch only.
std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t size);

/// The key that an epoch's augmentation is drawn with.
uint64_t augmentation_key(uint64_t seed, int64_t epoch);

}  // namespace strait
