#pragma once

#include <cstdint>

namespace strait {

/// Mixes one 64-bit word (the finaliser of SplitMix64, Steele et al. 2014): a bijection in which every
/// input bit reaches every output bit.
constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// A key made of any number of words; order matters. Equal words give the equal key on every machine.
template <class... Words>
constexpr uint64_t make_key(uint64_t first, Words... words) {
  uint64_t key = mix64(first + 0x9e3779b97f4a7c15ULL);
  ((key = mix64(key ^ (static_cast<uint64_t>(words) + 0x9e3779b97f4a7c15ULL + (key << 6)))), ...);
  return key;
}

/// A random stream that is a pure function of (key, position): word `i` can be computed without the
/// words before it, so that a draw can be replayed and does not depend on threads or order of work.
class CounterRandom {
 public:
  /// The stream of this key, at position 0.
  explicit constexpr CounterRandom(uint64_t key) : key_(key) {}

  /// Word `position` of the stream: 64 uniform bits.
  constexpr uint64_t word(uint64_t position) const {
    return mix64(key_ + (position + 1) * 0x9e3779b97f4a7c15ULL);
  }

  /// The word at the stream's position, which moves on by one.
  constexpr uint64_t next() { return word(position_++); }

  /// Uniform in [0, bound), bound > 0. The bias is below bound / 2^64.
  constexpr uint64_t below(uint64_t bound) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((static_cast<Wide>(next()) * bound) >> 64);
  }

  /// Uniform in [0, 1) with 24 bits.
  constexpr float uniform() { return static_cast<float>(next() >> 40) * 0x1p-24F; }

 private:
  uint64_t key_;
  uint64_t position_ = 0;
};

}  // namespace strait
