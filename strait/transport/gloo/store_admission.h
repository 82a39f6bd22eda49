#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strait {

namespace store {
enum class Answer : uint32_t;
}

/// Lets every rank of an attempt in once.
class StoreAdmission {
 public:
  /// `attempt`: the name that those who come must give.
  StoreAdmission(int ranks, std::string attempt);

  /// What one who comes as this rank is told; store::Answer::welcome: it is in.
  store::Answer admit(uint32_t rank, std::string_view attempt);

  /// Whether all have come.
  bool is_complete() const { return missing_ == 0; }

 private:
  std::string attempt_;
  std::vector<bool> came_;  ///< by rank
  size_t missing_;
};

}  // namespace strait
