#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace strait {

/// Keys and values that take a limited number of bytes.
class StoreTable {
 public:
  /// `limit`: bytes of all keys and values.
  explicit StoreTable(size_t limit) : limit_(limit) {}

  /// The value of a key, until the table changes; null where it has none.
  const std::string* find(const std::string& key) const;

  /// Sets the value of a key. False where there is no room for it; then nothing changes.
  bool set(const std::string& key, std::string value);

  /// The same for one that must be there, whatever the limit.
  void put(const std::string& key, std::string value);

  /// Adds to the number at a key, eight bytes, or to 0 where there is none, and gives the sum, modulo 2^64.
  /// Nothing where the value is no number or there is no room; then nothing changes.
  std::optional<uint64_t> add(const std::string& key, uint64_t number);

 private:
  size_t bytes_with(const std::string& key, const std::string& value) const;

  size_t limit_;
  size_t bytes_ = 0;
  std::map<std::string, std::string> values_;
};

}  // namespace strait
