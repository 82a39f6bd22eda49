#include "strait/transport/gloo/store_table.h"

#include <utility>

#include "strait/transport/gloo/store_protocol.h"

namespace strait {

const std::string* StoreTable::find(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

/// Bytes of all once that value is set.
size_t StoreTable::bytes_with(const std::string& key, const std::string& value) const {
  const std::string* before = find(key);
  const size_t others = before == nullptr ? bytes_ : bytes_ - key.size() - before->size();
  return others + key.size() + value.size();
}

bool StoreTable::set(const std::string& key, std::string value) {
  if (bytes_with(key, value) > limit_) return false;
  put(key, std::move(value));
  return true;
}

void StoreTable::put(const std::string& key, std::string value) {
  bytes_ = bytes_with(key, value);
  values_[key] = std::move(value);
}

std::optional<uint64_t> StoreTable::add(const std::string& key, uint64_t number) {
  const std::string* before = find(key);
  if (before != nullptr && before->size() != sizeof(number)) return std::nullopt;
  const uint64_t sum = number + (before == nullptr ? 0 : store::number_at<uint64_t>(*before, 0));
  std::string value;
  store::put(value, sum);
  if (!set(key, std::move(value))) return std::nullopt;
  return sum;
}

}  // namespace strait
