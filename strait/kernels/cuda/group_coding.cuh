#pragma once

#include "strait/kernels/cuda/device.cuh"
#include "strait/kernels/cuda/feedback_arithmetic.h"
#include "strait/kernels/cuda/group_codecs.h"
#include "strait/kernels/cuda/groups.h"

// Encoding and decoding of groups with a coder (coder.h). A thread has one octet at a time, so that the
// loads of a warp stand side by side. A small group belongs to as many lanes of a warp as it has octets, which
// ask each other for the group's extent, and is read once. A large one is read twice, by as many blocks of
// threads as it takes.

namespace strait::kernels::cuda {

constexpr uint32_t kSmallGroup = kLanes * kOctet;  // elements
constexpr uint32_t kTileOctets = kThreads;         // of a large group that a block of threads has at a time

/// What an encoder's kernels take.
template <class Coder>
struct Encoding {
  const float* x;
  float* state;  ///< null without feedback
  Places places;
  Coder coder;
  void* headers;
  uint8_t* codes;
  uint32_t* faults;
};

/// Joins the extents of groups of `lanes` lanes, a power of two, so that all have the same.
template <class Coder>
__device__ typename Coder::Extent joined(typename Coder::Extent extent, uint32_t lanes) {
  constexpr uint32_t kWords = sizeof(extent) / sizeof(uint32_t);
  for (uint32_t step = lanes / 2; step > 0; step /= 2) {
    typename Coder::Extent other;
    for (uint32_t i = 0; i < kWords; ++i) {
      reinterpret_cast<uint32_t*>(&other)[i] =
          __shfl_xor_sync(kAllLanes, reinterpret_cast<const uint32_t*>(&extent)[i], static_cast<int>(step));
    }
    extent = Coder::join(extent, other);
  }
  return extent;
}

/// An octet of what is encoded, and of the state where there is feedback.
struct Terms {
  float term[kOctet];
  float state[kOctet];
};

/// Those behind `count` are as the first.
template <Feedback feedback, class Coder>
__device__ Terms load_terms(const Encoding<Coder>& work, uint64_t begin, uint32_t count) {
  Terms terms;
  load_octet(work.x + begin, count, terms.term);
  if (count < kOctet) fill_octet(terms.term, count);
  if constexpr (feedback != Feedback::none) {
    load_octet(work.state + begin, count, terms.state);
    if (count < kOctet) fill_octet(terms.state, count);
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) terms.term[i] = term_of<feedback>(terms.term[i], terms.state[i]);
  }
  return terms;
}

template <class Coder>
__device__ typename Coder::Extent extent_of(const Terms& terms, uint32_t count) {
  return count == 0 ? typename Coder::Extent{} : Coder::see(terms.term);
}

/// Writes the codes of an octet of a group, and the state behind them. All lanes of a warp call it.
template <Feedback feedback, class Coder>
__device__ void write_codes(const Encoding<Coder>& work, const typename Coder::Line& line, Terms& terms,
                            uint64_t begin, uint32_t count, uint8_t* out) {
  uint32_t codes[kOctet] = {};
  if (count != 0) code_octet(work.coder, terms.term, line, work.coder.divisor(line), begin, codes);
  store_codes(first_codes(pack_octet(codes, work.coder.bits), count, work.coder.bits), count, work.coder.bits,
              out);
  if constexpr (feedback != Feedback::none) {
    AllFinite states;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      terms.state[i] = state_after<feedback>(terms.term[i], work.coder.value(codes[i], line), terms.state[i]);
      states.see(terms.state[i]);
    }
    if (!states.are() && count != 0) raise(work.faults, kPastFloat);
    store_octet(terms.state, count, work.state + begin);
  }
}

/// Encodes groups of up to kSmallGroup elements, each by 2^`lanes_log2` lanes of a warp.
template <class Coder, Feedback feedback>
__global__ void __launch_bounds__(kThreads) encode_small_groups(Encoding<Coder> work, uint32_t lanes_log2) {
  const uint64_t number = thread_number() >> lanes_log2;
  const uint32_t lanes = 1U << lanes_log2;
  const uint32_t octet = threadIdx.x & (lanes - 1);
  const bool is_group = number < work.places.groups();
  const auto group = static_cast<uint32_t>(number);
  const Place place = is_group ? work.places.group(group, work.coder.bits) : Place{};
  const auto size = static_cast<uint32_t>(place.size);
  const uint32_t count = octet * kOctet < size ? least_of(size - octet * kOctet, kOctet) : 0;
  const uint64_t begin = place.begin + octet * kOctet;
  Terms terms = load_terms<feedback>(work, begin, count);
  const auto extent = joined<Coder>(extent_of<Coder>(terms, count), lanes);
  const auto line = work.coder.line(extent);
  const bool is_sendable = is_group && work.coder.is_sendable(line);
  if (is_group && octet == 0) {
    Coder::put_header(work.headers, group, line);
    if (!is_sendable) raise(work.faults, kNotSendable);
  }
  uint8_t* const out = work.codes + place.code_byte + octet * work.coder.bits;
  write_codes<feedback>(work, line, terms, begin, is_sendable ? count : 0, out);
}

/// The parts of a large group, of some tiles each, of which a block of threads has one.
struct Parts {
  uint32_t tiles;
  WholeDivision of_group;

  Parts(uint64_t group_size, uint32_t of_tiles)
      : tiles(of_tiles),
        of_group(static_cast<uint32_t>((group_size + of_tiles * kTileOctets * kOctet - 1) /
                                       (of_tiles * kTileOctets * kOctet))) {}
};

/// The part that this block of threads has.
struct Part {
  uint32_t group;
  uint64_t first_octet;
  Place place;

  template <class Coder>
  __device__ Part(const Encoding<Coder>& work, const Parts& parts)
      : group(parts.of_group.of(blockIdx.x)),
        first_octet(uint64_t{blockIdx.x - group * parts.of_group.by()} * parts.tiles * kTileOctets),
        place(work.places.group(group, work.coder.bits)) {}

  /// Elements of the group's octet of this number.
  __device__ uint32_t count(uint64_t octet) const {
    const uint64_t before = octet * kOctet;
    return before < place.size ? static_cast<uint32_t>(least_of<uint64_t>(place.size - before, kOctet)) : 0;
  }
};

/// Joins what is seen in parts with `extents`, one for each group, which are all 0 before.
template <class Coder, Feedback feedback>
__global__ void __launch_bounds__(kThreads)
    find_extents(Encoding<Coder> work, Parts parts, typename Coder::Extent* extents) {
  using Extent = typename Coder::Extent;
  __shared__ Extent of_warps[kWarps];
  const Part part(work, parts);
  Extent extent{};
#pragma unroll 4
  for (uint32_t tile = 0; tile < parts.tiles; ++tile) {
    const uint64_t octet = part.first_octet + tile * kTileOctets + threadIdx.x;
    const uint32_t count = part.count(octet);
    const Terms terms = load_terms<feedback>(work, part.place.begin + octet * kOctet, count);
    extent = Coder::join(extent, extent_of<Coder>(terms, count));
  }
  extent = joined<Coder>(extent, kLanes);
  if (threadIdx.x % kLanes == 0) of_warps[threadIdx.x / kLanes] = extent;
  __syncthreads();
  if (threadIdx.x >= kLanes) return;
  extent = joined<Coder>(threadIdx.x < kWarps ? of_warps[threadIdx.x] : Extent{}, kWarps);
  if (threadIdx.x != 0) return;
  auto* const target = reinterpret_cast<uint32_t*>(extents + part.group);
  for (uint32_t i = 0; i < sizeof(Extent) / sizeof(uint32_t); ++i) {
    atomicMax(target + i, reinterpret_cast<const uint32_t*>(&extent)[i]);
  }
}

/// Encodes a part, a tile, of a large group whose extent is known.
template <class Coder, Feedback feedback>
__global__ void __launch_bounds__(kThreads)
    encode_large_groups(Encoding<Coder> work, Parts parts, const typename Coder::Extent* extents) {
  const Part part(work, parts);
  const auto line = work.coder.line(extents[part.group]);
  const bool is_sendable = work.coder.is_sendable(line);
  if (part.first_octet == 0 && threadIdx.x == 0) {
    Coder::put_header(work.headers, part.group, line);
    if (!is_sendable) raise(work.faults, kNotSendable);
  }
  if (!is_sendable) return;
  const uint64_t octet = part.first_octet + threadIdx.x;
  const uint32_t count = part.count(octet);
  const uint64_t begin = part.place.begin + octet * kOctet;
  Terms terms = load_terms<feedback>(work, begin, count);
  write_codes<feedback>(work, line, terms, begin, count,
                        work.codes + part.place.code_byte + octet * work.coder.bits);
}

/// Decodes an octet of a row, which is of one group. `add`: adds to what is there.
template <class Coder>
__global__ void __launch_bounds__(kThreads)
    decode_groups(const void* headers, const uint8_t* codes, Places places, Coder coder, bool add, float* out,
                  uint32_t* faults) {
  const auto [count, group, begin, code_byte] = places.octet(thread_number(), coder.bits);
  if (count == 0) return;
  const auto line = Coder::read_header(headers, group);
  const uint64_t packed = load_bytes(codes + code_byte, octet_bytes(count, coder.bits));
  bool is_message = coder.is_received(line) && is_padding_zero(packed, count, coder.bits);
  float values[kOctet];
#pragma unroll
  for (uint32_t i = 0; i < kOctet; ++i) {  // behind `count` are zeros, which every coder has
    const uint32_t code = code_at(packed, i, coder.bits);
    is_message &= coder.is_code(code, line);
    values[i] = coder.value(code, line);
  }
  if (!is_message) raise(faults, kNotAMessage);
  if (add) {
    float sums[kOctet];
    load_octet(out + begin, count, sums);
    AllFinite all;
#pragma unroll
    for (uint32_t i = 0; i < kOctet; ++i) {
      values[i] = sums[i] + values[i];
      all.see(values[i]);
    }
    if (!all.are()) raise(faults, kPastFloat);
  }
  store_octet(values, count, out + begin);
}

/// The smallest number of lanes, as its logarithm, that have an octet each of so many elements, at most
/// kSmallGroup.
inline uint32_t lanes_log2_for(uint64_t elements) {
  uint32_t log2 = 0;
  while ((uint64_t{kOctet} << log2) < elements) ++log2;
  return log2;
}

/// Of what is launched for. Throws where it is too large.
inline Places places_of(const Layout& layout) {
  if (!Places::fits(layout)) throw std::runtime_error("CUDA: the message is too large for a launch");
  return Places(layout);
}

template <class Coder, Feedback feedback>
void launch_small(const Encoding<Coder>& work, Stream stream) {
  const uint32_t lanes_log2 = lanes_log2_for(work.places.group_size());
  launch(encode_small_groups<Coder, feedback>, uint64_t{work.places.groups()} << lanes_log2, stream, work,
         lanes_log2);
}

template <class Coder, Feedback feedback>
void launch_large(const Encoding<Coder>& work, void* workspace, Stream stream) {
  using Extent = typename Coder::Extent;
  auto* const extents = static_cast<Extent*>(workspace);
  const uint64_t groups = work.places.groups();
  const auto threads = [&](const Parts& parts) { return groups * parts.of_group.by() * kThreads; };
  // An atomic maximum for every tile would be one for every 8 KiB; small messages need the parallel tiles more.
  const Parts several(work.places.group_size(), work.places.octets() * kOctet < kManyElements ? 1 : 8);
  const Parts tiles(work.places.group_size(), 1);
  clear(extents, groups * sizeof(Extent), stream);
  launch(find_extents<Coder, feedback>, threads(several), stream, work, several, extents);
  launch(encode_large_groups<Coder, feedback>, threads(tiles), stream, work, tiles, extents);
}

template <class Coder>
void launch_decoder(const void* headers, const void* codes, const Layout& layout, const Coder& coder, bool add,
                    float* out, uint32_t* faults, Stream stream) {
  const Places places = places_of(layout);
  launch(decode_groups<Coder>, places.octets(), stream, headers, static_cast<const uint8_t*>(codes), places,
         coder, add, out, faults);
}

}  // namespace strait::kernels::cuda
