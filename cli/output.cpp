#include "cli/output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait::cli {
namespace {

bool is_terminal_or_device(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISCHR(status.st_mode);
}

void check(bool written) {
  if (written || errno == EPIPE || (errno == EIO && is_terminal_or_device(STDOUT_FILENO))) return;
  throw Error("cannot write standard output: {}", std::strerror(errno));
}

void write(std::string_view text) { check(std::fwrite(text.data(), 1, text.size(), stdout) == text.size()); }

}  // namespace

void print(std::string_view text) { write(printable(text)); }

void print_bytes(std::string_view bytes) { isatty(STDOUT_FILENO) == 1 ? print(bytes) : write(bytes); }

void show(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

void flush_output() { check(std::fflush(stdout) == 0); }

size_t terminal_width() {
  constexpr size_t kUsualWidth = 80;
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualWidth;
}

std::string clock_time(double seconds) {
  const auto whole = std::llround(seconds);
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string number_text(double value) {
  constexpr double kLarge = 1e6;
  return value < kLarge ? fmt::format("{:.2f}", value) : fmt::format("{:.2e}", value);
}

std::string score_text(const Score& score) {
  const Metric* judge = judge_of(score);
  if (judge == nullptr) return fmt::format("loss {:.4f}", score.loss);
  const std::string value = number_text(score.at(*judge));
  return judge->unit.empty() ? fmt::format("{} {}", judge->name, value) : value + std::string(judge->unit);
}

std::string scores_text(const Evaluation& test) {
  std::string text =
      fmt::format("off {}  on ({}) {}", score_text(test.off), to_string(test.named), score_text(test.on));
  for (const auto& [mode, score] : test.modes) {
    if (mode != test.named) text += fmt::format("  {} {}", to_string(mode), score_text(score));
  }
  return text;
}

std::string test_text(const std::optional<Evaluation>& test) {
  return test ? "  test " + scores_text(*test) : "";
}

}  // namespace strait::cli
