#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace strait {

/// A program that runs beside this one and never outlives it: when the thread that started it ends, by
/// SIGKILL too, the kernel kills it. It has a process group of its own, so that Ctrl-C at a terminal
/// reaches this program alone, which can then stop its children one by one in order; Ctrl-Z does not
/// reach them either.
class Child {
 public:
  /// What to start, and with what.
  struct Command {
    std::vector<std::string> words;  ///< the program's path, then its arguments
    std::filesystem::path output;    ///< gets standard output and error at its end; made where missing
    std::vector<int> cores;          ///< those it may run on; at least one
    std::vector<std::string> environment = {};  ///< NAME=VALUE, on top of this program's
  };

  /// How it ended: with an exit status, or by a signal.
  struct End {
    int status = 0;  ///< exit status
    int signal = 0;  ///< 0: none, `status` counts
  };

  /// Starts it, with an empty standard input. Throws Error when there can be no more processes; a program
  /// or output that cannot be opened ends the child with status 127.
  explicit Child(const Command& command);
  ~Child();  ///< kills it where it still runs
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// How it ended, or nothing while it runs. Does not wait. To be called until it gives an end.
  std::optional<End> poll();

  /// Whether a signal such as SIGSTOP holds it, so that it does nothing more by itself.
  bool is_held() const;

  /// Sends SIGTERM; it may still run afterwards.
  void ask_to_stop() const;

 private:
  pid_t pid_ = -1;  ///< -1 when it has ended
};

}  // namespace strait
