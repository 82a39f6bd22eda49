#include "strait/base/trace.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace strait {
namespace {

constexpr std::array<std::string_view, 8> kLanes = {"forward", "backward", "encode", "decode",
                                                    "send",    "receive",  "wait",   "link"};

int64_t microseconds(Trace::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

std::string_view to_string(Lane lane) { return kLanes[static_cast<size_t>(lane)]; }

void Trace::add(Lane lane, std::string name, Clock::time_point start, Clock::time_point end) {
  const std::scoped_lock lock(mutex_);
  events_.push_back({lane, std::move(name), microseconds(start.time_since_epoch()), microseconds(end - start)});
}

std::string Trace::events_json(int rank) const {
  const std::scoped_lock lock(mutex_);
  std::string json =
      fmt::format(R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})", rank);
  for (size_t lane = 0; lane < kLanes.size(); ++lane) {
    json += fmt::format(
        ",\n"
        R"({{"ph":"M","name":"thread_name","pid":{0},"tid":{1},"args":{{"name":"{2}"}}}})",
        rank, lane, kLanes[lane]);
    json += fmt::format(
        ",\n"
        R"({{"ph":"M","name":"thread_sort_index","pid":{0},"tid":{1},"args":{{"sort_index":{1}}}}})",
        rank, lane);
  }
  for (const Event& event : events_) {
    json += fmt::format(
        ",\n"
        R"({{"ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{},"dur":{}}})",
        event.name, to_string(event.lane), rank, static_cast<int>(event.lane), event.start, event.duration);
  }
  return json;
}

TraceSpan::TraceSpan(Trace* trace, Lane lane, std::string_view what, int place, int micro_batch)
    : trace_(trace), lane_(lane) {
  if (trace_ == nullptr) return;
  name_ = fmt::format("{} {}, micro-batch {}", what, place, micro_batch);
  start_ = Trace::Clock::now();
}

TraceSpan::~TraceSpan() {
  if (trace_ != nullptr) trace_->add(lane_, std::move(name_), start_, Trace::Clock::now());
}

std::string trace_file(const std::vector<std::string>& events_of_ranks) {
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n";
  for (size_t rank = 0; rank < events_of_ranks.size(); ++rank) {
    json += (rank == 0 ? "" : ",\n") + events_of_ranks[rank];
  }
  return json + "\n]}\n";
}

}  // namespace strait
