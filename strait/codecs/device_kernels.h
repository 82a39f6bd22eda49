#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>  // clang wants it complete before any header of ATen/ops

#include <cstdint>

#include "strait/codecs/groups.h"
#include "strait/codecs/index_set.h"
#include "strait/codecs/value_format.h"
#include "strait/kernels/levels.h"
#include "strait/kernels/quantise.h"

namespace strait {

/// What a codec of groups asks kernels for: a message of all headers, then all codes (Grid::codes()).
struct GroupForm {
  /// What a header holds, and what codes stand for.
  enum class Levels {
    range,       ///< `quant`: lo and hi, of type `ranges`, 2^bits levels from the one to the other
    symmetric,   ///< `quant` with levels=symmetric: a scale, integers of `bits` bits
    fp8,         ///< `fp8`: a scale, numbers of `format`
    mx,          ///< `mx`: a byte that says a power of two, numbers of `format`
    mx_integers  ///< `mx:int8`: the same, integers of 8 bits
  };
  Levels levels = Levels::range;  ///< of this kind
  Grid grid = {};                 ///< the groups, of up to 256 elements for the last three kinds
  unsigned bits = 0;              ///< of a code
  bool is_stochastic = false;     ///< rounded by `dither`, else to nearest; the first two kinds
  kernels::Dither dither = {};    ///< of the message's first element
  kernels::RangeType ranges = kernels::RangeType::fp32;  ///< of the first kind
  kernels::SmallFloat format = {};                       ///< for those that write its numbers
};

/// The parts of a sparse message whose index sets are bitmaps.
struct SparseParts {
  at::Tensor bitmaps;  ///< uint8 [G, bytes of a group's]
  at::Tensor values;   ///< likewise, the elements that are kept
};

/// The arithmetic of feedback in an encoder's own pass.
struct KernelFeedback {
  /// What is encoded and how the state moves: nothing else than x; x + state, and the state becomes what of it
  /// the receiver does not see; x - state, and the state moves by what the receiver sees.
  enum class Rule { none, sum, difference };
  Rule rule = Rule::none;  ///< which of these
  at::Tensor state = {};   ///< of the size and order of x, changed in place, and undefined after an exception
};

/// Kernels for a kind of device, by which a codec does in a pass or two what takes many tensor operations. All
/// tensors are contiguous, not empty and on one device of that kind; they are used in the order of its current
/// stream. The bytes are those of the CPU's codecs. A device may have no kernel for something: then what is
/// given is undefined.
///
/// What is written throws NumericError for a value that cannot be sent; what is read is undefined, too, for
/// bytes that no codec writes.
class DeviceKernels {
 public:
  /// Of a group of which k elements are kept, at most.
  static constexpr size_t kMostElements = 0x7fffffff;

  virtual ~DeviceKernels() = default;

  /// Whether they can run on this device of their kind.
  virtual bool serve(c10::Device /*device*/) const { return true; }

  /// The message of x, float32 in the groups' order: uint8 [bytes]. Feedback only with Levels::range.
  virtual at::Tensor write_groups(const at::Tensor& x, const GroupForm& form,
                                  const KernelFeedback& feedback) const = 0;

  /// The way back, float32 [elements].
  virtual at::Tensor read_groups(const at::Tensor& message, const GroupForm& form) const = 0;

  /// The same, added to `sum`, with Levels::range alone. False for bytes that no codec writes; then the sum is
  /// undefined. Throws NumericError for a sum that is past float32.
  virtual bool add_groups(const at::Tensor& message, const GroupForm& form, at::Tensor& sum) const = 0;

  /// Each value of x as 2 bytes: uint8 [elements * 2]. `type` is fp16 or bf16.
  virtual at::Tensor narrow(const at::Tensor& x, PlainValue type) const = 0;

  /// The way back, float32 [elements].
  virtual at::Tensor widen(const at::Tensor& bytes, PlainValue type) const = 0;

  /// The k elements of largest magnitude of each of `groups`, float32 [G, n], 0 < k < n <= kMostElements: of
  /// equal ones those of lower index.
  virtual SparseParts write_largest(const at::Tensor& groups, int64_t k, PlainValue type,
                                    const KernelFeedback& feedback) const = 0;

  /// The groups [G, n] of which these are the parts, with +0 for elements that are not kept.
  virtual at::Tensor read_sparse(const SparseParts& parts, int64_t n, int64_t k, PlainValue type) const = 0;

  /// The values of the parts added to `sum` [G, n], as add_groups() does.
  virtual bool add_sparse(const SparseParts& parts, int64_t k, PlainValue type, at::Tensor& sum) const = 0;
};

/// Those of a device; null where there are none that serve it.
const DeviceKernels* kernels_of(c10::Device device);

/// Says which serve for a kind of device from now on; null: none. They must outlive their use.
void set_device_kernels(at::DeviceType type, const DeviceKernels* kernels);

/// write_groups() of x, contiguous, in whose order `scope` says; undefined where there are no kernels.
at::Tensor write_by_kernels(const at::Tensor& x, const Scope& scope, const GroupForm& form);

/// The way back to meta.shape; undefined where read_groups() is, or where there are no kernels.
at::Tensor read_by_kernels(const at::Tensor& message, const MessageMeta& meta, const Scope& scope,
                           const GroupForm& form);

}  // namespace strait
