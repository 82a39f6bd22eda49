#include "cli/sweep_progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output.h"
#include "strait/base/stop_signal.h"

namespace strait::cli {
namespace {

constexpr double kSecondsBetweenUpdates = 0.5;

}  // namespace

SweepProgress::SweepProgress(const Sweep& sweep, std::span<const size_t> chosen, const SweepRecord& record,
                             int jobs, bool quiet)
    : chosen_(chosen.size()), jobs_(jobs), quiet_(quiet) {
  for (const auto& run : sweep.runs) {
    View& view = views_.emplace_back();
    view.name = run.config.name;
    view.epochs = run.config.train.epochs;
  }
  for (const size_t run : chosen) {
    name_width_ = std::max(name_width_, views_[run].name.size());
    if (record.is_finished(run)) {
      ++ended_;
    } else {
      views_[run].pace.epochs_left = views_[run].epochs;
    }
  }
}

void SweepProgress::on_start(size_t run) {
  views_[run].running = true;
  views_[run].since_start = Stopwatch();
}

void SweepProgress::on_epoch(size_t run, const EpochProgress& epoch) {
  View& view = views_[run];
  view.last = epoch;
  view.pace.epochs_left = view.epochs - epoch.done;
  view.pace.epochs_timed += 1;
  view.pace.seconds = view.since_start.seconds();
  if (line_.on_terminal() || quiet_) return;
  print(fmt::format("{:<{}}  epoch {}/{}  train loss {:.4f}{}\n", view.name, name_width_, epoch.done,
                    view.epochs, epoch.train_loss, test_text(epoch.test)));
  flush_output();
}

void SweepProgress::on_end(size_t run, const RunState& state) {
  View& view = views_[run];
  view.running = false;
  view.pace.epochs_left = 0;
  ++ended_;
  if (quiet_) return;
  line_.clear();
  const std::string reason = state.error.empty() ? "" : ": " + state.error;
  const std::string left = state.status == RunStatus::stopped ? "" : time_left();
  print(fmt::format("[{}/{}] {} {} after {}{}{}\n", ended_, chosen_, view.name, to_string(*state.status),
                    clock_time(view.since_start.seconds()), reason, left));
  flush_output();
}

std::string SweepProgress::time_left() const {
  std::vector<RunPace> paces;
  for (const auto& view : views_) paces.push_back(view.pace);
  const auto seconds = seconds_left(paces, jobs_);
  return seconds && ended_ < chosen_ ? fmt::format("  {} left", clock_time(*seconds)) : "";
}

std::string SweepProgress::live_line() const {
  std::string line =
      fmt::format("{}/{} done  {}{}", ended_, chosen_, clock_time(whole_.seconds()), time_left());
  for (const auto& view : views_) {
    if (!view.running) continue;
    line += fmt::format("  {} {}/{}", view.name, view.last ? view.last->done : 0, view.epochs);
    if (!view.last) continue;
    const auto& test = view.last->test;
    if (test) line += fmt::format(" {} {}", score_text(test->off), score_text(test->on));
  }
  return line;
}

void SweepProgress::draw() {
  if (!quiet_ && line_.is_due(kSecondsBetweenUpdates)) line_.draw(live_line());
}

bool SweepProgress::should_stop() {
  draw();
  return stop_requested();
}

}  // namespace strait::cli
