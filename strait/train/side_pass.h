#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

#include "strait/models/model.h"

namespace strait {

/// The parameters and buffers of the layers of this process's stages, for passes that training is to know
/// nothing of.
class SidePass {
 public:
  /// Of the layers of this process's stages.
  explicit SidePass(const Model& own);

  /// Runs `pass`, which adds its gradients to `gradients`, one a parameter, zeros of its shape where there are
  /// none yet. Afterwards the parameters' gradients, buffers such as batch normalisation's and the state of
  /// LibTorch's generators have the bits that they had, so that the batch's own pass draws the same.
  void run(std::vector<at::Tensor>& gradients, const std::function<void()>& pass) const;

  /// The parameters.
  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// Of each parameter.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> buffers_;
};

}  // namespace strait
