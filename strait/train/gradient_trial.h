#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <utility>
#include <vector>

#include "strait/pipeline/executor.h"
#include "strait/run/metrics.h"
#include "strait/train/side_pass.h"
#include "strait/transport/group.h"

namespace strait {

/// The rows of a batch from `first` on, without what links know of samples.
StepInput rows_of(const StepInput& batch, int64_t first, int64_t rows);

/// Samples in two halves, each of them as many batches as the other.
using SampleHalves = std::array<std::vector<StepInput>, 2>;

/// Those of some batches, which go to the halves by turns; of an odd number the last one is left out. A single
/// batch has its rows in halves, and a single row is both of them.
SampleHalves halves_of(const std::vector<StepInput>& batches);

/// Compares the gradients that samples have with some codecs with those that they have with others, with the
/// same random draws. Holds up to four gradients of all parameters.
class GradientTrial {
 public:
  /// The pass is over the layers of this process's stages, which the executor runs; `stages` are those of its
  /// parameters. All must outlive it.
  GradientTrial(const SidePass& pass, const std::vector<int>& stages, Executor& executor, Group& group,
                SampleHalves samples)
      : pass_(pass), stages_(stages), executor_(executor), group_(group), samples_(std::move(samples)) {}

  /// Compares with the links as they are from now on. Collective.
  void set_reference();

  /// Products of the gradients with the links as they are and with those of set_reference(), the same on every
  /// process. Stages whose gradient is zero without the codecs do not count; one whose gradients are not finite
  /// counts as if they had nothing in common with those without. Collective.
  GradientProducts products();

 private:
  using Gradients = std::array<std::vector<at::Tensor>, 2>;  ///< of each half those of the parameters

  Gradients gradients() const;

  const SidePass& pass_;
  const std::vector<int>& stages_;
  Executor& executor_;
  Group& group_;
  SampleHalves samples_;
  Gradients reference_;
  std::vector<GradientProducts::Halves> of_reference_;  ///< of each parameter its own products
};

/// The sum of products of two measurements, where the earlier ones count for the share `kept`.
GradientProducts sum_of(const GradientProducts& now, const GradientProducts& earlier, double kept);

/// The cosine of the angle between the mean gradients over all samples with a codec and without, from 0 to 1,
/// and 1 of products that are all zero.
///
/// With a and b the halves, c the gradients with and g those without, (c_a g_b + c_b g_a) / 2, c_a c_b and g_a
/// g_b are in expectation free of what is particular to a sample, of noise and of errors. Where the halves have
/// so little in common that g_a g_b is below 0.15 of g's own square, the same products within the halves are
/// added in that proportion which makes it 0.15: so much is the plain cosine's, and all with halves of the same
/// row.
double cosine_of(const GradientProducts& products);

}  // namespace strait
