#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strait {

/// Threads that work beside their owner. Each performs the tasks that it is given in their order, one at a
/// time. They fail together: once a task has thrown, no other is begun in any of them. Thread-safe; a task
/// itself may not wait.
class Workers {
 public:
  /// What a thread is given to do. It is destroyed as soon as it is done, or dropped.
  using Task = std::function<void()>;

  /// Starts so many threads, numbered from 0.
  explicit Workers(size_t threads);

  /// Drops the tasks that are not begun and waits for those that are. An error that nobody has asked for is
  /// dropped too.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Gives a thread its next task and says how many it has been given with that. Drops the task after a failure
  /// or stop().
  size_t post(size_t thread, Task task);

  /// Waits until the thread has done the first `tasks` of its tasks. Throws where that will not come: the error
  /// of the task that failed, in whatever thread, or Error after stop().
  void wait_for(size_t thread, size_t tasks);

  /// Waits for all tasks of all threads. Throws as wait_for().
  void wait();

  /// Throws the error of the task that failed, if one did.
  void check();

  /// Drops the tasks that are not begun and does not wait for those that are.
  void stop();

  /// After stop(), waits until those that are begun are done.
  void wait_for_begun();

 private:
  struct Queue {
    std::deque<Task> tasks;  ///< not begun
    size_t posted = 0;
    size_t done = 0;
    bool is_at_work = false;
    std::thread thread;
  };
  void serve(Queue& queue);
  void end();
  void wait_until(const std::function<bool()>& is_done);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
  std::exception_ptr error_;  ///< the first
  std::vector<Queue> queues_;
};

}  // namespace strait
