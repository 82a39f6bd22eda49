#include "strait/base/child.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr int kCannotStart = 127;  // as the shell has it

/// This program's variables but for those that the assignments set, and these; as execve() takes them.
std::vector<char*> environment_with(const std::vector<std::string>& assignments) {
  const auto sets = [](const std::string& assignment, std::string_view variable) {
    return variable.starts_with(std::string_view(assignment).substr(0, assignment.find('=') + 1));
  };
  std::vector<char*> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::ranges::none_of(assignments, [&](const auto& a) { return sets(a, *variable); })) {
      all.push_back(*variable);
    }
  }
  for (const auto& assignment : assignments) all.push_back(const_cast<char*>(assignment.c_str()));
  all.push_back(nullptr);
  return all;
}

/// What the new process needs, made before fork(): between fork() and exec() nothing may be allocated.
struct Preparation {
  explicit Preparation(const Child::Command& command) : output(command.output.c_str()) {
    for (const auto& word : command.words) words.push_back(const_cast<char*>(word.c_str()));
    words.push_back(nullptr);
    environment = environment_with(command.environment);
    CPU_ZERO(&cores);
    for (const int core : command.cores) CPU_SET(core, &cores);
  }

  const char* output;
  std::vector<char*> words;
  std::vector<char*> environment;
  cpu_set_t cores{};
  pid_t parent = getpid();
};

/// Blocks the stop signals while it lives: one that came to a new process before exec() would meet this
/// program's handler and be lost.
class StopSignalsBlocked {
 public:
  StopSignalsBlocked() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGINT);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stop, &before_);
  }
  ~StopSignalsBlocked() { unblock(); }
  StopSignalsBlocked(const StopSignalsBlocked&) = delete;
  StopSignalsBlocked& operator=(const StopSignalsBlocked&) = delete;

  void unblock() const { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

bool redirect(int target, const char* path, int flags) {
  constexpr mode_t kMode = 0644;
  const int file = open(path, flags | O_CLOEXEC, kMode);
  return file >= 0 && dup2(file, target) >= 0;
}

/// The new process until it is the program.
[[noreturn]] void become(const Preparation& to, const StopSignalsBlocked& blocked) {
  const bool ready = prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == to.parent && setpgid(0, 0) == 0 &&
                     sched_setaffinity(0, sizeof(to.cores), &to.cores) == 0 &&
                     redirect(STDIN_FILENO, "/dev/null", O_RDONLY) &&
                     redirect(STDOUT_FILENO, to.output, O_WRONLY | O_CREAT | O_APPEND) &&
                     dup2(STDOUT_FILENO, STDERR_FILENO) >= 0;
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  if (std::signal(SIGHUP, SIG_DFL) == SIG_IGN) std::signal(SIGHUP, SIG_IGN);  // under nohup
  blocked.unblock();
  if (ready) execve(to.words[0], to.words.data(), to.environment.data());
  _exit(kCannotStart);
}

}  // namespace

Child::Child(const Command& command) {
  const Preparation preparation(command);
  const StopSignalsBlocked blocked;
  pid_ = fork();
  if (pid_ < 0) throw Error("{}: cannot be started: {}", command.words[0], std::strerror(errno));
  if (pid_ == 0) become(preparation, blocked);
}

Child::~Child() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<Child::End> Child::poll() {
  STRAIT_CHECK(pid_ > 0, "the process has ended");
  int state = 0;
  const pid_t ended = waitpid(pid_, &state, WNOHANG);
  STRAIT_CHECK(ended >= 0, "waiting for process {}: {}", pid_, std::strerror(errno));
  if (ended == 0) return std::nullopt;
  pid_ = -1;
  if (WIFSIGNALED(state)) return End{.status = 0, .signal = WTERMSIG(state)};
  return End{.status = WEXITSTATUS(state), .signal = 0};
}

bool Child::is_held() const {
  siginfo_t state{};
  return pid_ > 0 && waitid(P_PID, static_cast<id_t>(pid_), &state, WSTOPPED | WNOHANG | WNOWAIT) == 0 &&
         state.si_pid == pid_;
}

void Child::ask_to_stop() const {
  if (pid_ > 0) kill(pid_, SIGTERM);
}

}  // namespace strait
