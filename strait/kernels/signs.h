#pragma once

#include <cstddef>
#include <span>

namespace strait::kernels {

/// One bit an element, LSB-first, padded with zeros: 1 where x < 0. out.size() == packed_size(x.size(), 1).
void pack_signs(std::span<const float> x, std::span<std::byte> out);

/// One of two values for each bit; the padding is ignored. in.size() == packed_size(out.size(), 1).
void unpack_signs(std::span<const std::byte> in, float if_clear, float if_set, std::span<float> out);

}  // namespace strait::kernels
