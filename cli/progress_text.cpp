#include "cli/progress_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/output.h"

namespace strait::cli {
namespace {

constexpr size_t kMostOfBar = 24;
constexpr size_t kLeastOfBar = 8;
constexpr size_t kBarFrame = 3;  // " []"
constexpr double kSlow = 10;     // samples per second

/// The parts of a line but for the bar; empty where they are not known.
struct Parts {
  std::string place;
  std::string share;
  std::string rate;
  std::string pass_left;
  std::string run_left;
  std::string loss;

  size_t size() const {
    return place.size() + share.size() + rate.size() + pass_left.size() + run_left.size() + loss.size();
  }
};

double pass_left(const Pace& pace) { return static_cast<double>(pace.total - pace.done) / pace.rate; }

std::string bar(const Pace& pace, size_t width) {
  const double share = static_cast<double>(pace.done) / static_cast<double>(std::max<int64_t>(pace.total, 1));
  const auto filled = static_cast<size_t>(std::clamp(share, 0.0, 1.0) * static_cast<double>(width));
  return fmt::format(" [{:<{}}]", std::string(filled, '#'), width);
}

int percent(const Pace& pace) { return static_cast<int>(100 * pace.done / std::max<int64_t>(pace.total, 1)); }

}  // namespace

std::string rate_text(double rate) { return fmt::format("{:.{}f}", rate, rate < kSlow ? 1 : 0); }

std::string bar_text(const std::string& label, const Pace& pace, size_t width) {
  Parts parts;
  parts.place = label + (pace.epoch < 0 ? "" : fmt::format("epoch {}/{} ", pace.epoch + 1, pace.epochs)) +
                fmt::format("{:<5}", pace.phase);
  parts.share = fmt::format(" {:>3}%", percent(pace));
  if (!std::isnan(pace.rate)) {
    parts.rate = fmt::format("  {} samples/s", rate_text(pace.rate));
    parts.pass_left = fmt::format("  {} left", clock_time(pass_left(pace)));
  }
  if (!std::isnan(pace.run_left)) parts.run_left = fmt::format(", {} in all", clock_time(pace.run_left));
  if (!std::isnan(pace.loss)) parts.loss = fmt::format("  loss {:.4f}", pace.loss);
  for (std::string* part : std::array{&parts.loss, &parts.run_left, &parts.rate}) {
    if (parts.size() + kBarFrame + kLeastOfBar <= width) break;
    part->clear();
  }
  if (parts.size() > width) parts.pass_left.clear();
  std::string line = parts.place;
  const size_t others = parts.size() + kBarFrame;
  if (others + kLeastOfBar <= width) line += bar(pace, std::min(width - others, kMostOfBar));
  line += parts.share + parts.rate + parts.pass_left + parts.run_left + parts.loss;
  return line.substr(0, width);
}

std::string progress_line(const std::string& label, const Pace& pace) {
  std::string line =
      fmt::format("{}epoch {} of {}: {} {}%", label, pace.epoch + 1, pace.epochs, pace.phase, percent(pace));
  if (!std::isnan(pace.rate)) {
    line += fmt::format(", {} samples/s, {} left", rate_text(pace.rate), clock_time(pass_left(pace)));
  }
  if (!std::isnan(pace.run_left)) line += fmt::format(", {} in all", clock_time(pace.run_left));
  return line;
}

}  // namespace strait::cli
