#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "strait/kernels/cuda/coder.h"
#include "strait/kernels/cuda/feedback_arithmetic.h"
#include "strait/kernels/cuda/groups.h"
#include "strait/kernels/cuda/half_arithmetic.h"
#include "strait/kernels/cuda/octet.h"
#include "strait/kernels/cuda/select_arithmetic.h"

// The kernels' arithmetic over whole messages on the CPU, in plain loops: the tests compare what it gives with
// the CPU's codecs, the sources here what the device gives with it. Sizes are those of the launchers
// (group_codecs.h, sparse.h); what is returned are the faults, and after one what was written is undefined.

namespace strait::kernels::cuda::on_host {

/// Elements of octet `octet` of `size`.
inline uint32_t octet_count(uint64_t octet, uint64_t size) {
  return static_cast<uint32_t>(std::min<uint64_t>(kOctet, size - octet * kOctet));
}

/// Encodes with a coder (coder.h); `state` is not looked at without feedback.
template <Feedback feedback = Feedback::none, class Coder>
uint32_t encode_groups(std::span<const float> x, std::span<float> state, const Layout& layout,
                       const Coder& coder, void* headers, std::span<uint8_t> codes) {
  uint32_t faults = 0;
  const Places places(layout);
  for (uint32_t group = 0; group < places.groups(); ++group) {
    const Place place = places.group(group, coder.bits);
    const auto term = [&](uint64_t i) {
      return term_of<feedback>(x[i], feedback == Feedback::none ? 0.0F : state[i]);
    };
    const auto load = [&](uint64_t begin, uint32_t count, float(&terms)[kOctet]) {
      for (uint32_t i = 0; i < count; ++i) terms[i] = term(begin + i);
      fill_octet(terms, count);
    };
    float terms[kOctet];
    typename Coder::Extent extent{};
    for (uint64_t octet = 0; octet * kOctet < place.size; ++octet) {
      load(place.begin + octet * kOctet, octet_count(octet, place.size), terms);
      extent = Coder::join(extent, Coder::see(terms));
    }
    const auto line = coder.line(extent);
    Coder::put_header(headers, group, line);
    if (!coder.is_sendable(line)) return faults | kNotSendable;
    for (uint64_t octet = 0; octet * kOctet < place.size; ++octet) {
      const uint32_t count = octet_count(octet, place.size);
      const uint64_t begin = place.begin + octet * kOctet;
      uint32_t of_octet[kOctet];
      load(begin, count, terms);
      code_octet(coder, terms, line, Coder::divisor(line), begin, of_octet);
      const uint64_t packed = first_codes(pack_octet(of_octet, coder.bits), count, coder.bits);
      for (uint32_t i = 0; i < octet_bytes(count, coder.bits); ++i) {
        codes[place.code_byte + octet * coder.bits + i] = static_cast<uint8_t>(packed >> (8 * i));
      }
      if constexpr (feedback != Feedback::none) {
        for (uint32_t i = 0; i < count; ++i) {
          const float received = coder.value(of_octet[i], line);
          state[begin + i] = state_after<feedback>(term(begin + i), received, state[begin + i]);
          if (!is_finite(state[begin + i])) faults |= kPastFloat;
        }
      }
    }
  }
  return faults;
}

/// Decodes with a coder; with `add` to what is in `out`.
template <class Coder>
uint32_t decode_groups(const void* headers, std::span<const uint8_t> codes, const Layout& layout,
                       const Coder& coder, bool add, std::span<float> out) {
  uint32_t faults = 0;
  const Places places(layout);
  for (uint64_t number = 0; number < places.octets(); ++number) {
    const auto [count, group, begin, code_byte] = places.octet(number, coder.bits);
    const auto line = Coder::read_header(headers, group);
    if (!coder.is_received(line)) return faults | kNotAMessage;
    uint64_t packed = 0;
    for (uint32_t i = 0; i < octet_bytes(count, coder.bits); ++i) {
      packed |= uint64_t{codes[code_byte + i]} << (8 * i);
    }
    if (!is_padding_zero(packed, count, coder.bits)) faults |= kNotAMessage;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t code = code_at(packed, i, coder.bits);
      if (!coder.is_code(code, line)) faults |= kNotAMessage;
      float& target = out[begin + i];
      target = add ? target + coder.value(code, line) : coder.value(code, line);
      if (add && !is_finite(target)) faults |= kPastFloat;
    }
  }
  return faults;
}

/// Writes a value at its place in a list.
inline void put_value(float value, ValueType type, uint64_t position, void* values) {
  const uint32_t bits = value_bits(value, type);
  if (type == ValueType::fp32) {
    static_cast<uint32_t*>(values)[position] = bits;
  } else {
    static_cast<uint16_t*>(values)[position] = static_cast<uint16_t>(bits);
  }
}

/// The bits of a value of a list.
inline uint32_t bits_at(const void* values, ValueType type, uint64_t position) {
  return type == ValueType::fp32 ? static_cast<const uint32_t*>(values)[position]
                                 : static_cast<const uint16_t*>(values)[position];
}

/// The threshold of the k largest magnitudes.
inline Threshold threshold_of(std::span<const float> terms, uint64_t k) {
  constexpr Digits kAll;
  Threshold threshold{kAll.low, static_cast<uint32_t>(k)};
  for (uint32_t digit = 0; digit < kDigits; ++digit) {
    std::vector<uint32_t> bins(kAll.values(digit));
    for (const float term : terms) {
      const uint32_t magnitude = magnitude_bits(term);
      if (threshold.is_candidate(magnitude, kAll, digit)) ++bins[kAll.value(magnitude, digit)];
    }
    uint32_t above = 0;
    uint32_t bin = kAll.values(digit) - 1;
    for (; above + bins[bin] < threshold.wanted; --bin) above += bins[bin];
    threshold = threshold.behind(kAll, digit, bin, above);
  }
  return threshold;
}

/// One group of write_largest(), at the places of its own; `terms` has its size.
template <Feedback feedback = Feedback::none>
uint32_t write_largest(std::span<const float> x, std::span<float> state, std::span<float> terms, uint64_t k,
                       ValueType type, std::span<uint8_t> bitmap, void* values) {
  uint32_t faults = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    terms[i] = term_of<feedback>(x[i], feedback == Feedback::none ? 0.0F : state[i]);
  }
  const Threshold threshold = threshold_of(terms, k);
  std::ranges::fill(bitmap, uint8_t{0});
  Counts before;
  for (size_t i = 0; i < x.size(); ++i) {
    const uint32_t magnitude = magnitude_bits(terms[i]);
    const bool is_kept = threshold.keeps(magnitude, before.equal());
    if (is_kept) {
      if (!is_sendable(terms[i], type)) faults |= kNotSendable;
      bitmap[i / 8] = static_cast<uint8_t>(bitmap[i / 8] | 1U << i % 8);
      put_value(terms[i], type, before.kept(threshold.wanted), values);
    }
    if constexpr (feedback != Feedback::none) {
      const float received = value_of(value_bits(terms[i], type), type);
      if (feedback == Feedback::ef) state[i] = terms[i];
      if (is_kept) state[i] = state_after<feedback>(terms[i], received, state[i]);
      if (!is_finite(state[i])) faults |= kPastFloat;
    }
    before.packed +=
        Counts::of(magnitude > threshold.magnitude ? 1 : 0, magnitude == threshold.magnitude ? 1 : 0).packed;
  }
  return faults;
}

/// One group of read_sparse().
inline uint32_t read_sparse(std::span<const uint8_t> bitmap, const void* values, ValueType type, uint64_t k,
                            bool add, std::span<float> out) {
  uint32_t faults = 0;
  uint64_t position = 0;
  for (size_t i = 0; i < 8 * bitmap.size(); ++i) {
    const bool is_one = (bitmap[i / 8] >> i % 8 & 1) != 0;
    if (is_one && (position >= k || i >= out.size())) return faults | kNotAMessage;
    const uint32_t bits = is_one ? bits_at(values, type, position++) : 0;
    if (is_one && !is_received(bits, type)) faults |= kNotAMessage;
    if (i >= out.size()) continue;
    if (!add) out[i] = is_one ? value_of(bits, type) : 0.0F;
    if (add && is_one) {
      out[i] += value_of(bits, type);
      if (!is_finite(out[i])) faults |= kPastFloat;
    }
  }
  return position == k ? faults : faults | kNotAMessage;
}

/// narrow() of casts.h, and of fp32 a copy.
inline uint32_t narrow(std::span<const float> x, ValueType type, void* out) {
  for (size_t i = 0; i < x.size(); ++i) put_value(x[i], type, i, out);
  return std::ranges::all_of(x, [&](float value) { return is_sendable(value, type); }) ? 0U : kNotSendable;
}

/// widen() of casts.h.
inline uint32_t widen(const void* in, ValueType type, std::span<float> out) {
  uint32_t faults = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!is_received(bits_at(in, type, i), type)) faults |= kNotAMessage;
    out[i] = value_of(bits_at(in, type, i), type);
  }
  return faults;
}

}  // namespace strait::kernels::cuda::on_host
