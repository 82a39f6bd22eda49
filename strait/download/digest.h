#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace strait {

/// The hash functions that official sums are published in.
enum class DigestKind : uint8_t { md5, sha1, sha256 };

/// `md5`, `sha1` or `sha256`.
std::string_view to_string(DigestKind kind);

/// A published sum: lower-case hexadecimal. It tells an official file from another one; md5 and sha1 do
/// not protect against somebody who means harm.
struct Checksum {
  DigestKind kind = DigestKind::sha256;  ///< the hash function
  std::string hex;                       ///< two digits per byte of the sum

  bool operator==(const Checksum&) const = default;
};

/// Computes a sum over bytes that come in parts.
class Hasher {
 public:
  /// Begins a sum of no bytes.
  explicit Hasher(DigestKind kind);
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  /// Adds the next bytes.
  void update(std::span<const std::byte> bytes);

  /// The sum of all bytes so far; ends the computation.
  Checksum finish();

 private:
  struct State;
  DigestKind kind_;
  std::unique_ptr<State> state_;
};

/// The sum of a whole file. Throws InputError that names the file when it cannot be read.
Checksum file_checksum(const std::filesystem::path& path, DigestKind kind);

}  // namespace strait
