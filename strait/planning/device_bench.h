#pragma once

#include <c10/core/Device.h>

#include "strait/base/times.h"
#include "strait/codecs/codec.h"
#include "strait/planning/codec_bench.h"

namespace strait {

/// What a codec does on a device, whose payload stays there. Rates are 10^9 bytes of float32 tensor per second,
/// of the median time between two events of the device's stream.
struct DeviceRates {
  double copy_gb_s = 0;          ///< from tensor to tensor of the device
  double encode_gb_s = 0;        ///< of Codec::encode()
  double decode_gb_s = 0;        ///< of Codec::decode()
  double encode_copy_ratio = 0;  ///< over the rate of the copies that took turns with it
  double decode_copy_ratio = 0;  ///< likewise
  double bits = 0;               ///< of payload per element, of the last message
  double relative_error = 0;     ///< relative_error() of what is decoded
};

/// Verifies that a codec writes and reads on the device what it writes and reads on the CPU, bit for bit, and
/// times it there, in turns with copies. A codec that does not run on the device goes by the CPU, and its times
/// have the way there and back. `input` is on the CPU. Throws NumericError for input that the codec cannot send
/// and Error where the bytes or the tensors differ.
DeviceRates bench_on_device(c10::Device device, const Codec& codec, BenchInput& input,
                            const Repetitions& repetitions);

}  // namespace strait
