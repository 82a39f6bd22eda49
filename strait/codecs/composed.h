#pragma once

#include <ATen/core/Tensor.h>

// Bytes by tensor operations, on any device: what Codec::device_encode() and device_decode() are made of.

namespace strait {

/// The bytes of the elements of each row of `values` [R, n], uint8 [R, n * size of an element].
at::Tensor bytes_of_rows(const at::Tensor& values);

/// The way back, for elements of this type.
at::Tensor rows_of_bytes(const at::Tensor& bytes, at::ScalarType type);

/// Each row of `codes`, int64 [R, n] from 0 to 2^bits - 1, packed as by kernels/pack.h: uint8
/// [R, packed_size(n, bits)]. 1 <= bits <= 8.
at::Tensor packed_rows(const at::Tensor& codes, unsigned bits);

/// The way back, int64 [R, n]; undefined where the padding of a row is not zero. Waits for the device.
at::Tensor unpacked_rows(const at::Tensor& bytes, int64_t n, unsigned bits);

/// The bitmaps of sets of positions below n, int64 [R, k] without one twice in a row, as by
/// kernels/index_code.h: uint8 [R, bitmap_size(n)].
at::Tensor packed_sets(const at::Tensor& sets, int64_t n);

/// The way back, int64 [R, k] in ascending order; undefined where a row has other than k positions, or padding
/// that is not zero. Waits for the device.
at::Tensor unpacked_sets(const at::Tensor& bitmaps, int64_t n, int64_t k);

/// Whether every element is true. Waits for the device.
bool are_all(const at::Tensor& conditions);

/// Whether every number is finite, in one pass. Waits for the device.
bool are_finite(const at::Tensor& values);

/// Whether each number is -0.
at::Tensor is_negative_zero(const at::Tensor& values);

}  // namespace strait
