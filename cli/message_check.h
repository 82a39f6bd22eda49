#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace strait::cli {

/// The element type as safetensors files and people call it, such as float32.
std::string type_name(const at::Tensor& tensor);

/// Throws InputError that names file and tensor where `x` cannot be a message: one is float32 and has a
/// dimension at least.
void check_message(const std::string& name, const at::Tensor& x, const std::string& path);

}  // namespace strait::cli
