#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <thread>

namespace strait {

/// A thread that looks into a store again and again.
class Lookout {
 public:
  /// Looks once, and gives how long to wait until the next time; nothing: there is no next time. Must not
  /// throw.
  using Look = std::function<std::optional<std::chrono::milliseconds>()>;

  /// `look` owns what it uses.
  explicit Lookout(Look look);

  /// Ends the thread; leaves it behind when it has not come back after a second, because a store whose host has
  /// gone may never answer.
  ~Lookout();
  Lookout(const Lookout&) = delete;
  Lookout& operator=(const Lookout&) = delete;

  /// From any thread: the next look is to be at once.
  void wake();

 private:
  class Bell;
  std::shared_ptr<Bell> bell_;  ///< the thread's too, which may outlive this
  std::thread thread_;
};

}  // namespace strait
