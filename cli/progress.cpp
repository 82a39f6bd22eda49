#include "cli/progress.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "cli/output.h"
#include "strait/base/stop_signal.h"
#include "strait/base/units.h"

namespace strait::cli {
namespace {

constexpr double kSecondsBetweenDraws = 0.1;

/// What one direction of a boundary cost in an epoch.
std::string costs_of(const Traffic& traffic) {
  return fmt::format("{} bytes in {} messages, ratio {:.1f}, encoded in {:.2f} s, decoded in {:.2f} s",
                     traffic.wire_bytes, traffic.messages, traffic.ratio(), traffic.encode_seconds,
                     traffic.decode_seconds);
}

/// The lines that stand below an epoch's where the person wants to know more.
std::string details_of(const EpochMetrics& metrics, const std::string& label) {
  std::string lines;
  const auto add = [&](const std::string& line) { lines += fmt::format("{}  {}\n", label, line); };
  for (const auto& boundary : metrics.boundaries) {
    add(fmt::format("{} activations: {}", boundary.name, costs_of(boundary.activations)));
    add(fmt::format("{} gradients: {}", boundary.name, costs_of(boundary.gradients)));
  }
  for (const auto& stage : metrics.stages) {
    add(fmt::format("stage {}: forward {}, backward {} per micro-batch", stage.name,
                    duration_text(stage.forward), duration_text(stage.backward)));
  }
  add(fmt::format(
      "training {:.2f} s, of which {:.2f} s waiting for data; evaluation {:.2f} s; no stage computes "
      "{:.0f}% of the time",
      metrics.seconds, metrics.data_wait_seconds, metrics.evaluation_seconds, 100 * metrics.bubble_share));
  return lines;
}

/// What training was right about, besides its loss.
std::string training_text(const Score& train) {
  std::string text;
  for (const auto& [name, value] : train.metrics) {
    const Metric* metric = find_metric(name);
    if (metric == nullptr || metric->rises_with_loss) continue;
    text += fmt::format("  {} {}{}", name, number_text(value), metric->unit);
  }
  return text;
}

/// The lines of the ways between processes that are not as they should be; one that is said already is left
/// out.
std::string links_text(const std::vector<LinkMetrics>& links, std::set<std::pair<int, int>>& said,
                       const std::string& label) {
  std::string lines;
  for (const auto& link : links) {
    if (link.relayed && said.emplace(link.peer, link.rank).second) {
      lines += fmt::format("{}ranks {} and {} cannot reach each other and speak through rank 0\n", label,
                           link.peer, link.rank);
    }
    if (link.outages > 0) {
      lines +=
          fmt::format("{}the link of ranks {} and {} was lost {}, for {:.1f} s\n", label, link.peer, link.rank,
                      link.outages == 1 ? "once" : fmt::format("{} times", link.outages), link.seconds);
    }
  }
  return lines;
}

}  // namespace

Progress::Progress(std::string label, int epochs, bool verbose, double seconds_between_lines)
    : label_(label.empty() ? "" : std::move(label) + "  "),
      epochs_(epochs),
      verbose_(verbose),
      seconds_between_lines_(seconds_between_lines) {}

bool Progress::should_stop() { return stop_requested(); }

/// From the last epoch, or in the first one from its training alone.
double Progress::run_left(const Pace& pace) const {
  if (pace.epoch < 0) return NAN;
  const int after = epochs_ - pace.epoch - 1;
  const double known = epoch_times_.run_left(after);
  if (!std::isnan(known) || pace.phase != "train") return known;
  return static_cast<double>((1 + after) * pace.total - pace.done) / pace.rate;
}

void Progress::on_batch(int epoch, const char* phase, int64_t done, int64_t total, double mean_loss) {
  if (pass_.reach(phase, done)) epoch_times_.begin_pass(epoch);
  const bool is_due = bar_.on_terminal() ? done >= total || bar_.is_due(kSecondsBetweenDraws)
                                         : epoch >= 0 && since_line_.seconds() >= seconds_between_lines_;
  if (!is_due) return;
  Pace pace{.epoch = epoch,
            .epochs = epochs_,
            .phase = phase,
            .done = done,
            .total = total,
            .rate = pass_.rate(),
            .run_left = NAN,
            .loss = mean_loss};
  pace.run_left = run_left(pace);
  if (bar_.on_terminal()) return bar_.draw(bar_text(label_, pace, terminal_width() - 1));
  print(progress_line(label_, pace) + "\n");
  flush_output();
  since_line_ = Stopwatch();
}

void Progress::on_note(const std::string& line) {
  bar_.clear();
  print(fmt::format("{}{}\n", label_, line));
  flush_output();
}

void Progress::on_steps(const StepMetrics& metrics) {
  const double bytes = metrics.wire_bytes / static_cast<double>(metrics.steps);
  const double ratio = metrics.wire_bytes > 0 ? metrics.raw_bytes / metrics.wire_bytes : 1;
  on_note(fmt::format(
      "step {}  train loss {:.4f}{}  lr {:.3g}  {} a step, ratio {:.1f}x  {} samples/s  bubble {:.0f}%",
      metrics.step, metrics.train.loss, training_text(metrics.train), metrics.lr,
      size_text(static_cast<uint64_t>(bytes)), ratio, rate_text(metrics.samples_per_second),
      100 * metrics.bubble_share));
}

void Progress::on_evaluation(const StepEvaluation& evaluation) {
  on_note(fmt::format("step {}  test {}", evaluation.step, scores_text(evaluation.test)));
}

void Progress::on_epoch(const EpochMetrics& metrics) {
  bar_.clear();
  epoch_times_.end_epoch();
  since_line_ = Stopwatch();
  const Traffic activations = metrics.total(Direction::activation);
  const Traffic gradients = metrics.total(Direction::gradient);
  const std::string tokens =
      metrics.tokens_per_second ? fmt::format("  {:.0f} tokens/s", *metrics.tokens_per_second) : "";
  print(fmt::format(
      "{}epoch {}/{}  train loss {:.4f}{}{}  ratio {:.1f}x forward "
      "{:.1f}x backward  {} samples/s{}  {}\n",
      label_, metrics.epoch + 1, epochs_, metrics.train.loss, training_text(metrics.train),
      test_text(metrics.test), activations.ratio(), gradients.ratio(), rate_text(metrics.samples_per_second),
      tokens, clock_time(metrics.seconds + metrics.evaluation_seconds)));
  print(links_text(metrics.links, relayed_, label_));
  if (verbose_) print(details_of(metrics, label_));
  flush_output();
}

}  // namespace strait::cli
