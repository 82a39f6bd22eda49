#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

namespace strait {

/// The operations that threads wait for, so that another thread can end these waits.
class Waits {
 public:
  /// Says for its lifetime that its thread waits for this operation, which Work::abort() can end: one that
  /// sends or receives.
  class Guard {
   public:
    Guard(Waits& waits, c10d::Work& work);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    Waits& waits_;
    c10d::Work& work_;
  };

  /// Ends every wait, those to come too: Work::wait() gives false. The first reason counts.
  void end(const std::string& reason);

  /// Why they were ended; nothing: they were not.
  std::optional<std::string> ended() const;

  /// Whether a thread waits now.
  bool any() const;

 private:
  mutable std::mutex mutex_;
  std::vector<c10d::Work*> works_;  ///< one for each thread that waits
  std::optional<std::string> ended_;
};

}  // namespace strait
