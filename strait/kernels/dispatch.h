#pragma once

#include <hwy/highway.h>

#include <cstdint>

namespace strait::kernels {

/// Highway's number of the target in use. Throws InputError when STRAIT_KERNELS names none of kernel_targets().
int64_t chosen_target();

}  // namespace strait::kernels

/// The function NAME of the namespace of the target in use, after HWY_EXPORT(NAME).
#define STRAIT_KERNEL(NAME) (::strait::kernels::chosen_target(), HWY_DYNAMIC_DISPATCH(NAME))
