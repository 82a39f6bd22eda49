#pragma once

#include <string>

#include "strait/base/clock.h"

namespace strait::cli {

/// A line at the end of a terminal that is drawn anew while something goes on, on standard error. Without a
/// terminal there is none.
class LiveLine {
 public:
  LiveLine();

  /// Leaves the terminal without the line.
  ~LiveLine();
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;

  /// Whether standard error is a terminal, and one that can erase a line.
  bool on_terminal() const { return terminal_; }

  /// Whether the terminal does not show the line, or shows one that is older than that.
  bool is_due(double seconds) const { return terminal_ && (!shown_ || since_drawn_.seconds() >= seconds); }

  /// Draws it in place of the one before; what does not fit is cut off.
  void draw(const std::string& text);

  /// Takes it away, so that other lines can be written.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
  Stopwatch since_drawn_;
};

}  // namespace strait::cli
