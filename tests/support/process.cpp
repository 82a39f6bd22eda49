#include "tests/support/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/support/temp_dir.h"

namespace strait::test {
namespace {

[[noreturn]] void become(char* const* arguments, const char* out, const char* err) {
  const auto redirect = [](int target, const char* path, int flags) {
    const int file = open(path, flags, 0600);
    if (file < 0 || dup2(file, target) < 0) _exit(127);
  };
  redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
  redirect(STDOUT_FILENO, out, O_WRONLY | O_CREAT);
  redirect(STDERR_FILENO, err, O_WRONLY | O_CREAT);
  execv(arguments[0], arguments);
  _exit(127);
}

}  // namespace

ProcessResult run_process(const std::string& program, const std::vector<std::string>& arguments) {
  const TempDir dir;
  const std::string out = dir / "out";
  const std::string err = dir / "err";
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const auto& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) become(words.data(), out.c_str(), err.c_str());
  int state = 0;
  if (waitpid(child, &state, 0) != child) throw std::runtime_error("cannot wait for " + program);
  return {WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state), read_file(out), read_file(err)};
}

}  // namespace strait::test
