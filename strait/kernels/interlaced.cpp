#include "strait/kernels/interlaced.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "strait/base/bits.h"
#include "strait/kernels/index_code.h"
#include "strait/kernels/masked.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "strait/kernels/interlaced.cpp"
#include <hwy/foreach_target.h>  // includes this file once for each target
#include <hwy/highway.h>
//
#include "strait/kernels/dispatch.h"
#include "strait/kernels/rice-inl.h"

#if HWY_ARCH_X86_64
#include <immintrin.h>
#endif

#ifndef STRAIT_KERNELS_INTERLACED_ONCE
#define STRAIT_KERNELS_INTERLACED_ONCE
namespace strait::kernels {

/// Whether a class of which the rarer kind has `rare` of n goes as it is: where Rice takes no less.
constexpr bool is_plain(size_t n, size_t rare) { return 8 * rare >= 3 * n; }

/// Bits that a class of n, of which k are in the set, should take.
inline double class_bits(size_t n, size_t k) {
  const size_t rare = std::min(k, n - k);
  const double size = std::bit_width(n);
  if (rare == 0) return size;
  return size + (is_plain(n, rare) ? static_cast<double>(n) : rice_bits(n, rare));
}

/// Makes `level` fit for a picture of n positions and that width.
void prepare(InterlaceLevel& level, size_t n, size_t width);

}  // namespace strait::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace strait::kernels::HWY_NAMESPACE {

namespace {

#if HWY_ARCH_X86_64 && HWY_TARGET <= HWY_AVX2
HWY_INLINE uint64_t extract(uint64_t bits, uint64_t places) { return _pext_u64(bits, places); }
HWY_INLINE uint64_t deposit(uint64_t bits, uint64_t places) { return _pdep_u64(bits, places); }
#else
HWY_INLINE uint64_t extract(uint64_t bits, uint64_t places) {
  uint64_t out = 0;
  for (unsigned i = 0; places != 0; places &= places - 1, ++i) {
    out |= (bits >> std::countr_zero(places) & 1) << i;
  }
  return out;
}
HWY_INLINE uint64_t deposit(uint64_t bits, uint64_t places) {
  uint64_t out = 0;
  for (; places != 0; places &= places - 1, bits >>= 1) {
    out |= (bits & 1) << std::countr_zero(places);
  }
  return out;
}
#endif

/// The 64 bits from bit `at` on of a row of words that begins at `words`.
HWY_INLINE uint64_t bits_from(const uint64_t* words, int64_t at) {
  const uint64_t* word = words + (at >> 6);
  const unsigned shift = at & 63;
  return word[0] >> shift | word[1] << 1 << (63 - shift);
}

/// Sorts the positions of a pass by how many of their neighbours, so far away, are known to be in the set.
HWY_INLINE void classify(InterlacePass& pass, const uint64_t* known,
                         const std::array<int64_t, kNeighbours>& away) {
  const std::span<const uint64_t> members = pass.members;
  uint64_t* const none = pass.classes[0].data();
  uint64_t* const one = pass.classes[1].data();
  uint64_t* const two = pass.classes[2].data();
  uint64_t* const three = pass.classes[3].data();
  uint64_t* const four = pass.classes[4].data();
  for (size_t word = 0; word < members.size(); ++word) {
    const auto at = static_cast<int64_t>(word * 64);
    const uint64_t a = bits_from(known, at + away[0]);
    const uint64_t b = bits_from(known, at + away[1]);
    const uint64_t c = bits_from(known, at + away[2]);
    const uint64_t d = bits_from(known, at + away[3]);
    const uint64_t all = members[word];
    const uint64_t odd = (a ^ b ^ c ^ d) & all;
    const uint64_t pairs = (a & b) | (c & d);
    none[word] = all & ~(a | b | c | d);
    one[word] = odd & ~pairs;
    three[word] = odd & pairs;
    four[word] = a & b & c & d & all;
    two[word] = all ^ (none[word] | odd | four[word]);
  }
}

/// Puts the positions `places` of the mask one behind the other; returns how many there are. What is left of
/// the last word, and a word more, become zero.
HWY_INLINE size_t pack(std::span<const uint64_t> mask, std::span<const uint64_t> places,
                       std::span<uint64_t> packed) {
  uint64_t* out = packed.data();
  uint64_t pending = 0;
  size_t filled = 0;
  for (size_t word = 0; word < mask.size(); ++word) {
    const uint64_t bits = extract(mask[word], places[word]);
    const auto count = static_cast<size_t>(std::popcount(places[word]));
    pending |= bits << filled;
    *out = pending;
    const bool full = filled + count >= 64;
    out += full ? 1 : 0;
    pending = full ? bits >> 1 >> (63 - filled) : pending;
    filled = (filled + count) % 64;
  }
  out[0] = pending;
  out[1] = 0;
  return static_cast<size_t>(out - packed.data()) * 64 + filled;
}

/// Adds to `known` what pack() took from it.
HWY_INLINE void unpack(std::span<const uint64_t> packed, std::span<const uint64_t> places,
                       std::span<uint64_t> known) {
  int64_t at = 0;
  for (size_t word = 0; word < known.size(); ++word) {
    known[word] |= deposit(bits_from(packed.data(), at), places[word]);
    at += std::popcount(places[word]);
  }
}

void flip(std::span<uint64_t> words, size_t n) {
  for (uint64_t& word : words) word = ~word;
  if (n % 64 != 0) words.back() &= (uint64_t{1} << n % 64) - 1;
}

/// Appends the set of k positions out of n.
HWY_INLINE void put_class(std::span<uint64_t> set, size_t n, BitWriter& bits) {
  const size_t k = count_masked(set);
  bits.put(k, static_cast<unsigned>(std::bit_width(n)));
  const size_t rare = std::min(k, n - k);
  if (rare == 0) return;
  if (is_plain(n, rare)) {
    for (size_t at = 0; at < n; at += 32) {
      const auto size = static_cast<unsigned>(std::min<size_t>(32, n - at));
      bits.put(set[at / 64] >> at % 64 & 0xffffffff, size);
    }
    return;
  }
  if (k > rare) flip(set, n);
  put_rice(set, rice_parameter(n, rare), bits);
}

/// Takes a set out of n from the stream, of at most `k` positions; from k goes what it has. Returns false when
/// there is none.
HWY_INLINE bool take_class(BitReader& bits, size_t n, size_t& k, std::span<uint64_t> set) {
  const auto size = static_cast<unsigned>(std::bit_width(n));
  const uint64_t count = bits.peek() & ((uint64_t{1} << size) - 1);
  bits.skip(size);
  if (count > n || count > k || bits.position() > bits.size()) return false;
  k -= count;
  const size_t rare = std::min(count, n - count);
  std::ranges::fill(set, uint64_t{0});
  if (rare > 0 && is_plain(n, rare)) {
    if (bits.size() - bits.position() < n) return false;
    for (size_t at = 0; at < n; at += 32) {
      const size_t part = std::min<size_t>(32, n - at);
      set[at / 64] |= (bits.peek() & ((uint64_t{1} << part) - 1)) << at % 64;
      bits.skip(part);
    }
    return count_masked(set) == count;
  }
  if (rare > 0 && !take_rice(bits, n, rare, rice_parameter(n, rare), set)) return false;
  if (count > rare) flip(set, n);
  return true;
}

HWY_INLINE size_t count(std::span<const uint64_t> mask) {
  size_t masked = 0;
  for (const uint64_t word : mask) masked += static_cast<size_t>(std::popcount(word));
  return masked;
}

HWY_INLINE size_t count_both(std::span<const uint64_t> mask, std::span<const uint64_t> places) {
  size_t masked = 0;
  for (size_t word = 0; word < mask.size(); ++word) {
    masked += static_cast<size_t>(std::popcount(mask[word] & places[word]));
  }
  return masked;
}

HWY_INLINE void add(std::span<const uint64_t> mask, std::span<const uint64_t> places,
                    std::span<uint64_t> known) {
  for (size_t word = 0; word < mask.size(); ++word) known[word] |= mask[word] & places[word];
}

void begin(InterlaceScratch& scratch, InterlaceLevel& level, size_t n, size_t width) {
  if (level.n != n || level.width != width) prepare(level, n, width);
  std::ranges::fill(level.known, uint64_t{0});
  if (scratch.packed.size() < level.words() + 2) scratch.packed.resize(level.words() + 2);
}

void classify(InterlaceLevel& level, size_t pass) {
  const auto furthest = static_cast<int64_t>(level.words() * 64);
  const int64_t down = level.down;
  const uint64_t* known = level.known_words().data();
  if (pass == 0) {
    const int64_t far = std::min(down + 1, furthest);
    classify(level.passes[0], known, {-far, 1 - down, down - 1, far});
  } else {
    classify(level.passes[1], known, {-down, -1, 1, down});
  }
}

/// Sorts the positions of all levels from `index` on into classes; returns how many bits the code of the mask
/// should take.
double plan(InterlaceScratch& scratch, size_t index, std::span<const uint64_t> mask, size_t n, size_t width) {
  if (index == scratch.levels.size()) return class_bits(n, count(mask));
  InterlaceLevel& level = scratch.levels[index];
  begin(scratch, level, n, width);
  const size_t coarse = pack(mask, level.even, level.coarse);
  double bits = plan(scratch, index + 1, level.coarse_words(), coarse, (width + 1) / 2);
  add(mask, level.even, level.known_words());
  for (size_t pass = 0; pass < level.passes.size(); ++pass) {
    classify(level, pass);
    for (const auto& places : level.passes[pass].classes) {
      bits += class_bits(count(places), count_both(mask, places));
    }
    add(mask, level.passes[pass].members, level.known_words());
  }
  return bits;
}

/// Writes what was planned.
void put(InterlaceScratch& scratch, size_t index, std::span<const uint64_t> mask, size_t n, BitWriter& bits) {
  const std::span packed = scratch.packed;
  if (index == scratch.levels.size()) {
    std::ranges::copy(mask, packed.begin());
    return put_class(packed.first(mask.size()), n, bits);
  }
  InterlaceLevel& level = scratch.levels[index];
  put(scratch, index + 1, level.coarse_words(), level.coarse_size, bits);
  for (const auto& pass : level.passes) {
    for (const auto& places : pass.classes) {
      const size_t size = pack(mask, places, packed);
      if (size > 0) put_class(packed.first(mask_words(size)), size, bits);
    }
  }
}

/// Takes what a picture has of k positions. Returns false when there is no valid code.
bool take(InterlaceScratch& scratch, size_t index, BitReader& bits, size_t n, size_t& k, size_t width,
          std::span<uint64_t> mask) {
  if (index == scratch.levels.size()) return take_class(bits, n, k, mask);
  InterlaceLevel& level = scratch.levels[index];
  begin(scratch, level, n, width);
  const size_t coarse = level.coarse_size;
  const auto known = level.known_words();
  if (!take(scratch, index + 1, bits, coarse, k, (width + 1) / 2, level.coarse_words())) return false;
  level.coarse[mask_words(coarse)] = 0;
  unpack(level.coarse, level.even, known);
  for (size_t pass = 0; pass < level.passes.size(); ++pass) {
    classify(level, pass);
    for (const auto& places : level.passes[pass].classes) {
      const size_t size = count(places);
      if (size == 0) continue;
      if (!take_class(bits, size, k, std::span(scratch.packed).first(mask_words(size)))) return false;
      scratch.packed[mask_words(size)] = 0;
      unpack(scratch.packed, places, known);
    }
  }
  std::ranges::copy(known, mask.begin());
  return true;
}

}  // namespace

double interlaced_bits(std::span<const uint64_t> mask, size_t n, size_t width, InterlaceScratch& scratch) {
  return plan(scratch, 0, mask, n, width);
}

std::optional<size_t> write_interlaced(std::span<const uint64_t> mask, size_t n, size_t width,
                                       InterlaceScratch& scratch, std::span<std::byte> out) {
  if (plan(scratch, 0, mask, n, width) > 8.0 * static_cast<double>(out.size())) return std::nullopt;
  BitWriter bits(out);
  put(scratch, 0, mask, n, bits);
  bits.finish();
  if (bits.full()) return std::nullopt;
  return bits.size();
}

bool read_interlaced(std::span<const std::byte> in, size_t n, size_t k, size_t width, InterlaceScratch& scratch,
                     std::span<uint64_t> mask) {
  BitReader bits(in);
  return take(scratch, 0, bits, n, k, width, mask) && k == 0 && is_finished(bits);
}

}  // namespace strait::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace strait::kernels {

HWY_EXPORT(interlaced_bits);
HWY_EXPORT(write_interlaced);
HWY_EXPORT(read_interlaced);

void prepare(InterlaceLevel& level, size_t n, size_t width) {
  constexpr uint64_t kEven = 0x5555555555555555;
  const size_t words = mask_words(n);
  level.down = static_cast<int64_t>(std::min(width, words * 64));
  level.margin = std::min(static_cast<size_t>(level.down) + 1, words * 64) / 64 + 2;
  level.known.resize(words + 2 * level.margin);
  level.even.assign(words, 0);
  for (auto& pass : level.passes) {
    pass.members.assign(words, 0);
    for (auto& places : pass.classes) places.resize(words);
  }
  auto& [corners, edges] = level.passes;
  for (size_t begin = 0, row = 0; begin < n; begin += width, ++row) {
    const size_t end = std::min(n, begin + width);
    const uint64_t even_columns = kEven << begin % 2;
    auto& even = row % 2 == 0 ? level.even : edges.members;
    auto& odd = row % 2 == 0 ? edges.members : corners.members;
    for (size_t at = begin; at < end; at = (at / 64 + 1) * 64) {
      const size_t last = std::min(end, (at / 64 + 1) * 64);
      const uint64_t places = ~uint64_t{0} >> (64 - (last - at)) << at % 64;
      even[at / 64] |= places & even_columns;
      odd[at / 64] |= places & ~even_columns;
    }
  }
  level.coarse_size = count_masked(level.even);
  level.coarse.resize(words + 2);
  level.n = n;  // last, so that what throws above leaves no level that looks prepared
  level.width = width;
}

size_t interlaced_bound(size_t n) {
  // A Rice code takes at most a sixteenth more than n bits of a class of n, when it is not plain.
  constexpr size_t kClasses = 2 * kInterlaceLevels * (kNeighbours + 1) + 1;
  return (n + n / 16 + kClasses * static_cast<size_t>(std::bit_width(n)) + 7) / 8;
}

double interlaced_bits(std::span<const uint64_t> mask, size_t n, size_t width, InterlaceScratch& scratch) {
  return STRAIT_KERNEL(interlaced_bits)(mask, n, width, scratch);
}

std::optional<size_t> write_interlaced(std::span<const uint64_t> mask, size_t n, size_t width,
                                       InterlaceScratch& scratch, std::span<std::byte> out) {
  return STRAIT_KERNEL(write_interlaced)(mask, n, width, scratch, out);
}

bool read_interlaced(std::span<const std::byte> in, size_t n, size_t k, size_t width, InterlaceScratch& scratch,
                     std::span<uint64_t> mask) {
  return STRAIT_KERNEL(read_interlaced)(in, n, k, width, scratch, mask);
}

}  // namespace strait::kernels
#endif
