#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace strait::kernels {

// A lossless code of a set of k positions out of n, 1 <= k <= n < 2^32, for positions that are the rows of
// pictures or of text, one behind the other, `width` >= 1 positions each (docs/wire_format.md, "interlaced").
//
// It codes a coarse lattice of the positions first and then, in four passes, those between; each position in
// a class by how many of its neighbours of earlier passes are in the set. So it gains where a set has spots
// or prefers some places of the lattice, and needs about as much as index_code.h where it has not. The passes,
// and not rows from above, because then all neighbours are known for 64 positions at once.

/// How many times the code goes to a coarser lattice.
constexpr size_t kInterlaceLevels = 2;

/// The neighbours that make a position's class; with none of them there are kNeighbours + 1 classes.
constexpr size_t kNeighbours = 4;

// What the code works in; it grows to the size of the largest set and stays so. The vectors are masks.

/// The masks of one pass.
struct InterlacePass {
  std::vector<uint64_t> members;                                    ///< the positions
  std::array<std::vector<uint64_t>, kNeighbours + 1> classes = {};  ///< those with so many neighbours
};

/// The masks and numbers of one level.
struct InterlaceLevel {
  size_t n = 0;      ///< of which the places are
  size_t width = 0;  ///< as are these
  int64_t down = 0;  ///< from a position to the one below, but never further than any position is

  std::vector<uint64_t> even;           ///< even row and column: what the next level codes
  std::array<InterlacePass, 2> passes;  ///< odd row and column, which lie between four even ones; the others
  size_t coarse_size = 0;               ///< of the next level
  std::vector<uint64_t> coarse;         ///< its set, and a word of zero
  size_t margin = 0;                    ///< words that a neighbour can lie outside of the level
  std::vector<uint64_t> known;          ///< the set so far, between `margin` words of zero before and behind

  /// Words of a mask of the level's places.
  size_t words() const { return even.size(); }

  /// The set so far, without the margins.
  std::span<uint64_t> known_words() { return std::span(known).subspan(margin, words()); }

  /// The next level's set, without the word of zero.
  std::span<uint64_t> coarse_words() { return std::span(coarse).first((coarse_size + 63) / 64); }
};

/// All that the code works in. Not for two threads at a time.
struct InterlaceScratch {
  std::array<InterlaceLevel, kInterlaceLevels> levels;  ///< from fine to coarse
  std::vector<uint64_t> packed;                         ///< a class without what lies between
};

/// Bytes that the code needs at most.
size_t interlaced_bound(size_t n);

/// Bits that the code should take, by the numbers of the classes. mask.size() == mask_words(n).
double interlaced_bits(std::span<const uint64_t> mask, size_t n, size_t width, InterlaceScratch& scratch);

/// Returns the bytes used, or nothing when `out` is too small or the numbers of the classes say that it should
/// be, which is found before anything is written. `out` may be overwritten as a whole.
/// mask.size() == mask_words(n).
std::optional<size_t> write_interlaced(std::span<const uint64_t> mask, size_t n, size_t width,
                                       InterlaceScratch& scratch, std::span<std::byte> out);

/// Returns false when `in` is not the code of k positions below n, to the last padding bit. Then the mask is
/// undefined. mask.size() == mask_words(n).
bool read_interlaced(std::span<const std::byte> in, size_t n, size_t k, size_t width, InterlaceScratch& scratch,
                     std::span<uint64_t> mask);

}  // namespace strait::kernels
