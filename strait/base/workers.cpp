#include "strait/base/workers.h"

#include <algorithm>
#include <utility>

#include "strait/base/error.h"

namespace strait {

Workers::Workers(size_t threads) : queues_(threads) {
  try {
    for (Queue& queue : queues_) queue.thread = std::thread([this, &queue] { serve(queue); });
  } catch (...) {
    end();
    throw;
  }
}

Workers::~Workers() { end(); }

void Workers::end() {
  stop();
  for (Queue& queue : queues_) {
    if (queue.thread.joinable()) queue.thread.join();
  }
}

void Workers::serve(Queue& queue) {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopped_ || !queue.tasks.empty(); });
    if (stopped_) return;
    Task task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    queue.is_at_work = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      task();
    } catch (...) {
      error = std::current_exception();
    }
    task = nullptr;  // what it holds is free before anybody hears that it is done
    lock.lock();
    queue.is_at_work = false;
    if (!error) {
      queue.done += 1;
    } else if (!error_) {
      error_ = error;
      stopped_ = true;
    }
    changed_.notify_all();
  }
}

size_t Workers::post(size_t thread, Task task) {
  Queue& queue = queues_.at(thread);
  const std::scoped_lock lock(mutex_);
  if (!stopped_) queue.tasks.push_back(std::move(task));
  changed_.notify_all();
  return ++queue.posted;
}

void Workers::wait_until(const std::function<bool()>& is_done) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopped_ || is_done(); });
  if (is_done()) return;
  if (error_) std::rethrow_exception(error_);
  throw Error("what is waited for has been given up");
}

void Workers::wait_for(size_t thread, size_t tasks) {
  const Queue& queue = queues_.at(thread);
  wait_until([&] { return queue.done >= tasks; });
}

void Workers::wait() {
  wait_until([&] {
    return std::ranges::all_of(queues_, [](const Queue& queue) { return queue.done == queue.posted; });
  });
}

void Workers::check() {
  const std::scoped_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

void Workers::stop() {
  std::vector<std::deque<Task>> dropped;  // freed without the lock: nobody knows what a task holds
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    for (Queue& queue : queues_) dropped.push_back(std::exchange(queue.tasks, {}));
  }
  changed_.notify_all();
}

void Workers::wait_for_begun() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return std::ranges::none_of(queues_, &Queue::is_at_work); });
}

}  // namespace strait
