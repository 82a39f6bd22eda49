#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/settings.h"

namespace strait {

/// The [data] table of a configuration.
struct DataOptions {
  /// The kind's own batch size and settings, but for those that are given. Throws InputError for a kind that is
  /// not in the list.
  explicit DataOptions(std::string_view kind, const SettingList& others = {});

  /// Those of "cifar10".
  DataOptions() : DataOptions("cifar10") {}

  std::string kind;         ///< one of data_kinds()
  std::string root = {};    ///< the folder of the files
  int64_t train_limit = 0;  ///< first N training samples; 0 = all
  int64_t test_limit = 0;   ///< first N test samples; 0 = all
  int64_t batch_size = 0;   ///< samples per batch, over all replicas
  Settings settings;        ///< the keys that the kind has of its own

  bool operator==(const DataOptions&) const = default;
};

/// The samples of one batch, B of them.
struct Batch {
  at::Tensor inputs;         ///< [B, ...] float32; of text [B, block] int64, tokens
  at::Tensor targets;        ///< [B] int64, class labels, or [B, K] float32, numbers; of text the inputs
  std::vector<int64_t> ids;  ///< B indices into the data set
  std::vector<int64_t> classes = {};  ///< Dataset::classes() of them, of a Loader
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

  /// The labels of the samples' classes; none for a data set whose samples have no class.
  virtual std::vector<int64_t> classes(std::span<const int64_t> /*ids*/) const { return {}; }
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

/// Sizes and a digest of what samples are to become: of data that differ, as when a file was added on one
/// machine, it differs too. Inputs do not count, because pictures may be decoded a little differently from
/// machine to machine.
std::string fingerprint(const DataSplits& data);

/// Throws InputError for a data set whose samples have no class, which feedback with slots=class needs.
void expect_classes(const Dataset& data);

/// The order in which an epoch visits `size` samples: a permutation that depends on seed and epoch only.
std::vector<int64_t> epoch_order(uint64_t seed, int64_t epoch, int64_t size);

/// The key that an epoch's augmentation is drawn with.
uint64_t augmentation_key(uint64_t seed, int64_t epoch);

}  // namespace strait
