#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace strait::fake {

// A device of its own for tests, as LibTorch's PrivateUse1 backend: a tensor there has an address that faults
// when anything but the device's own operations uses it, so that what runs on it can run on a GPU. Operations
// compute with the CPU's, and so to the CPU's bits. Copies to pinned memory are late: they fill it with a
// pattern, and bring the bytes when an event behind them is waited for, or their stream is. Memory is filled
// with that pattern, too, where it is new.
//
// An operation on a tensor of the device and one of the CPU is refused, unless that is a number. Between two
// events each operation takes a millisecond.
//
// A race is an operation of one stream on what another has written without an event between them, and the use
// of memory that another stream's operations may still use. Races are noted, not stopped.

/// The device; the first call makes it known to LibTorch.
at::Device device();

/// Messages about races since the last call.
std::vector<std::string> take_races();

/// Copies from the device to memory of the host that were asked for since the last call, in bytes.
size_t take_bytes_to_host();

/// While it is on, the device does not go on: an event that is asked whether it has passed says that it has
/// not.
void hold(bool on);

// What a library of the device's maker does, given pointers and a stream's handle: an operation of the stream.

/// Reads memory of the device.
std::vector<std::byte> read(const void* pointer, size_t size, void* stream);

/// Writes memory of the device.
void write(void* pointer, std::span<const std::byte> bytes, void* stream);

/// Has the operation behind the next `operations` ones find no memory; allocations and copies are some. It says
/// `no memory on the fake device` in the first of two lines.
void fail_after(int operations);

/// Takes that back. Gives whether it had come to that.
bool has_failed();

/// Whether a tensor's storage is memory that take_bytes_to_host()'s copies can bring late.
bool is_pinned(const at::Tensor& tensor);

}  // namespace strait::fake
