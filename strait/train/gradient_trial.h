#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <vector>

#include "strait/pipeline/executor.h"
#include "strait/train/side_pass.h"
#include "strait/transport/group.h"

namespace strait {

/// The rows of a batch from `first` on, without what links know of samples.
StepInput rows_of(const StepInput& batch, int64_t first, int64_t rows);

/// Compares the gradients that a batch has with some codecs with those that it has with others, with the same
/// random draws. Holds up to four gradients of all parameters.
class GradientTrial {
 public:
  /// The pass is over the layers of this process's stages, which the executor runs; `stages` are those of its
  /// parameters. All must outlive it.
  GradientTrial(const SidePass& pass, const std::vector<int>& stages, Executor& executor, Group& group,
                const StepInput& batch)
      : pass_(pass), stages_(stages), executor_(executor), group_(group), batch_(batch) {}

  /// Whether there is something to compare with.
  bool has_reference() const { return !reference_[0].empty(); }

  /// Compares with the links as they are from now on. Collective.
  void set_reference();

  /// The cosine of the angle between the mean gradients over all samples with the links as they are and with
  /// those of set_reference(): of each stage's parameters, and of these the mean over the stages, so that a
  /// stage counts that has small gradients, or whose gradients come over many boundaries. From 0 to 1; 0 for a
  /// stage where one is not finite. Stages whose gradient is zero do not count. Collective: the same on every
  /// process.
  ///
  /// With a and b the halves of the batch, c the gradients and g those to compare with, (c_a g_b + c_b g_a) /
  /// 2, c_a c_b and g_a g_b are in expectation free of what is particular to a sample, of noise and of errors.
  /// Where the halves have so little in common that g_a g_b is below 0.3 of g's own square, the same products
  /// within the halves are added in that proportion which makes it 0.3: so much is the plain cosine's, and all
  /// with a batch of one row.
  double cosine();

 private:
  using Halves = std::array<std::vector<at::Tensor>, 2>;

  Halves gradients() const;

  const SidePass& pass_;
  const std::vector<int>& stages_;
  Executor& executor_;
  Group& group_;
  const StepInput& batch_;
  Halves reference_;
};

}  // namespace strait
