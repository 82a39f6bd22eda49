#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cli/output.h"
#include "cli/stop_signal.h"

namespace strait::cli {
namespace {

constexpr int kBarWidth = 24;
constexpr double kSecondsBetweenDraws = 0.1;
constexpr double kSlow = 10;  // samples a second: then a decimal tells something

std::string rate_text(double rate) { return fmt::format("{:.{}f}", rate, rate < kSlow ? 1 : 0); }

}  // namespace

Progress::Progress(std::string label, int epochs)
    : label_(label.empty() ? "" : std::move(label) + "  "),
      epochs_(epochs),
      terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { clear_bar(); }

bool Progress::should_stop() { return stop_requested(); }

void Progress::clear_bar() {
  if (std::exchange(bar_shown_, false)) show("\r\x1b[K");
}

void Progress::on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) {
  if (!terminal_) return;
  if (done <= std::exchange(last_done_, done)) pass_ = Stopwatch();  // a new pass has begun
  if (bar_shown_ && done < total && since_drawn_.seconds() < kSecondsBetweenDraws) return;
  const double rate = static_cast<double>(done) / std::max(pass_.seconds(), 1e-9);
  const auto filled = static_cast<size_t>(kBarWidth * done / std::max<int64_t>(total, 1));
  const std::string place = epoch < 0 ? "" : fmt::format("epoch {}/{} ", epoch + 1, epochs_);
  const std::string loss = std::isnan(mean_loss) ? "" : fmt::format("  loss {:.4f}", mean_loss);
  show(fmt::format("\r\x1b[K{}{}{:<5} [{:<{}}] {}/{}  {} samples/s  {} left{}", label_, place, phase,
                   std::string(filled, '#'), kBarWidth, done, total, rate_text(rate),
                   clock_time(static_cast<double>(total - done) / rate), loss));
  bar_shown_ = true;
  since_drawn_ = Stopwatch();
}

void Progress::on_note(const std::string& line) {
  clear_bar();
  print(fmt::format("{}{}\n", label_, line));
  flush_output();
}

void Progress::on_evaluation(const StepEvaluation& evaluation) {
  on_note(fmt::format("step {}  test {}", evaluation.step, scores_text(evaluation.test)));
}

void Progress::on_epoch(const EpochMetrics& metrics) {
  clear_bar();
  const Traffic activations = metrics.total(Direction::activation);
  const Traffic gradients = metrics.total(Direction::gradient);
  const std::string tokens =
      metrics.tokens_per_second ? fmt::format("  {:.0f} tokens/s", *metrics.tokens_per_second) : "";
  print(fmt::format(
      "{}epoch {}/{}  train loss {:.4f}  accuracy {:.2f}%  test {}  ratio {:.1f}x down "
      "{:.1f}x back  {} samples/s{}  {}\n",
      label_, metrics.epoch + 1, epochs_, metrics.train.loss, metrics.train.accuracy, scores_text(metrics.test),
      activations.ratio(), gradients.ratio(), rate_text(metrics.samples_per_second), tokens,
      clock_time(metrics.seconds + metrics.evaluation_seconds)));
  flush_output();
}

}  // namespace strait::cli
