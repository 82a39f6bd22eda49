#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

// What a rank and a store say to each other over one connection. All numbers are little-endian.
//
//   the rank    kMagic, rank (u32), length of the attempt's name (u16), the name
//   the store   kMagic, Answer (u32)
//   and then, any number of times,
//   the rank    Operation (u8), length of the key (u16), length of the value (u32), the key, the value
//   the store   whether the key was there (u8), length of the value (u32), the value
namespace strait::store {

inline constexpr std::string_view kMagic = "strait-1";
inline constexpr size_t kMaxAttempt = 256;
inline constexpr size_t kMaxRequest = 1 << 20;

inline constexpr size_t kGreetingSize = kMagic.size() + sizeof(uint32_t) + sizeof(uint16_t);
inline constexpr size_t kAnswerSize = kMagic.size() + sizeof(uint32_t);
inline constexpr size_t kRequestSize = sizeof(uint8_t) + sizeof(uint16_t) + sizeof(uint32_t);
inline constexpr size_t kReplySize = sizeof(uint8_t) + sizeof(uint32_t);

enum class Answer : uint32_t {
  welcome = 1,
  other_attempt,  ///< the store is that of another start
  no_such_rank,
  taken,  ///< another process has come as this rank
};

enum class Operation : uint8_t {
  set = 1,
  get,
  has,    ///< get without the value
  add,    ///< the value, an int64, to the number at the key (0 where there is none); gives the sum
  leave,  ///< the rank closes the connection in order; no reply
};

/// The key under which the first rank that fails says why, and the one under which the store says whose
/// connection broke without leave before that.
inline constexpr const char* kFailureKey = "failure";
inline constexpr const char* kGoneKey = "gone";

template <class Number>
void put(std::string& bytes, Number number) {
  static_assert(std::is_trivially_copyable_v<Number>);
  bytes.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

/// The number at an offset that the bytes are known to reach.
template <class Number>
Number number_at(std::string_view bytes, size_t offset) {
  static_assert(std::is_trivially_copyable_v<Number>);
  Number number;
  std::memcpy(&number, bytes.data() + offset, sizeof(number));
  return number;
}

}  // namespace strait::store
