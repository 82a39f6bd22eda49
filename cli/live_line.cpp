#include "cli/live_line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

#include "cli/output.h"

namespace strait::cli {

LiveLine::LiveLine() : terminal_(isatty(STDERR_FILENO) == 1) {}

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
