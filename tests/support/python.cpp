#include "tests/support/python.h"

#include <array>
#include <cstdio>
#include <stdexcept>

namespace strait::test {

namespace {

std::string run(const std::string& python, const std::string& script, const std::string& arguments) {
  // A sanitizer's runtime must not be inherited: python3 is not instrumented.
  const std::string command = "env -u LD_PRELOAD '" + python + "' tests/python/" + script + " " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string output;
  std::array<char, 4096> part{};
  while (const size_t size = fread(part.data(), 1, part.size(), pipe)) output.append(part.data(), size);
  if (const int status = pclose(pipe); status != 0) {
    throw std::runtime_error(command + " failed with status " + std::to_string(status));
  }
  return output;
}

}  // namespace

std::string run_python(const std::string& script, const std::string& arguments) {
  return run("/usr/bin/python3", script, arguments);
}

std::string run_torch_python(const std::string& script, const std::string& arguments) {
  return run(torch_python(), script, arguments);
}

std::string torch_python() { return STRAIT_PYTHON; }

}  // namespace strait::test
