#include "cli/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "cli/output.h"

namespace strait::cli {

namespace {

/// Whether the terminal says of itself that it can do nothing but show characters, as that of an editor.
bool is_dumb() {
  const char* const name = std::getenv("TERM");
  return name != nullptr && std::string_view(name) == "dumb";
}

}  // namespace

LiveLine::LiveLine() : terminal_(isatty(STDERR_FILENO) == 1 && !is_dumb()) {}

LiveLine::~LiveLine() { clear(); }

void LiveLine::draw(const std::string& text) {
  if (!terminal_) return;
  show(fmt::format("\r\x1b[K{}", text.substr(0, terminal_width() - 1)));
  shown_ = true;
  since_drawn_ = Stopwatch();
}

void LiveLine::clear() {
  if (std::exchange(shown_, false)) show("\r\x1b[K");
}

}  // namespace strait::cli
