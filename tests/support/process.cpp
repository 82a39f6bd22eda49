#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <thread>

namespace strait::test {
namespace {

[[noreturn]] void become(char* const* arguments, const std::vector<std::string>& variables, const char* out,
                         const char* err) {
  const auto redirect = [](int target, const char* path, int flags) {
    const int file = open(path, flags, 0600);
    if (file < 0 || dup2(file, target) < 0) _exit(127);
  };
  redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
  redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
  std::signal(SIGHUP, SIG_DFL);  // whoever runs the tests may ignore it, as nohup does
  for (const auto& variable : variables) putenv(const_cast<char*>(variable.c_str()));
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

Process::Process(const std::string& program, const std::vector<std::string>& arguments,
                 const std::vector<std::string>& variables) {
  const std::string out = dir_ / "out";
  const std::string err = dir_ / "err";
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  id_ = fork();
  if (id_ < 0) throw std::runtime_error("cannot fork");
  if (id_ == 0) become(words.data(), variables, out.c_str(), err.c_str());
}

Process::~Process() {
  if (ended_) return;
  kill(id_, SIGKILL);
  waitpid(id_, &state_, 0);
}

bool Process::has_ended() {
  if (!ended_) ended_ = waitpid(id_, &state_, WNOHANG) == id_;
  return ended_;
}

void Process::send(int signal) {
  if (!has_ended()) kill(id_, signal);
}

ProcessResult Process::wait() {
  if (!ended_ && waitpid(id_, &state_, 0) != id_) throw std::runtime_error("cannot wait for a process");
  ended_ = true;
  return {WIFEXITED(state_) ? WEXITSTATUS(state_) : 128 + WTERMSIG(state_), read_file(dir_ / "out"),
          read_file(dir_ / "err")};
}

ProcessResult Process::wait(std::chrono::milliseconds limit) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!has_ended() && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  send(SIGKILL);
  return wait();
}

ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments,
                          const std::vector<std::string>& variables) {
  return Process(program, arguments, variables).wait();
}

}  // namespace strait::test
