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

/// What a connection begins with, from either side; the digit is the version.
inline constexpr std::string_view kMagic = "strait-1";

/// Most bytes of a key and its value.
inline constexpr size_t kMaxRequest = 1 << 20;

/// Bytes of a rank's first message, without the attempt's name.
inline constexpr size_t kGreetingSize = kMagic.size() + sizeof(uint32_t) + sizeof(uint16_t);

/// Bytes of the store's answer to it.
inline constexpr size_t kAnswerSize = kMagic.size() + sizeof(uint32_t);

/// Bytes of a request, without key and value.
inline constexpr size_t kRequestSize = sizeof(uint8_t) + sizeof(uint16_t) + sizeof(uint32_t);

/// Bytes of a reply, without the value.
inline constexpr size_t kReplySize = sizeof(uint8_t) + sizeof(uint32_t);

/// What the store says to a rank's first message.
enum class Answer : uint32_t {
  welcome = 1,
  other_attempt,  ///< the store is that of another start
  no_such_rank,
  taken,  ///< another process has come as this rank
};

/// What a rank asks for.
enum class Operation : uint8_t {
  set = 1,
  get,
  has,    ///< get without the value
  add,    ///< the value, an int64, to the number at the key (0 where there is none); gives the sum
  leave,  ///< the rank closes the connection in order; no reply
};

/// Appends the number, little-endian.
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
