#include "strait/experiment/start_summary.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

#include "strait/base/cores.h"
#include "strait/base/error.h"
#include "strait/base/host.h"
#include "strait/base/link_rate.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/boundary/boundary.h"
#include "strait/data/batch_parts.h"
#include "strait/data/kinds.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/learning_rate.h"
#include "strait/train/runtime.h"
#include "strait/train/step_plan.h"
#include "strait/train/task.h"
#include "strait/wire/frame.h"

namespace strait {
namespace {

int64_t elements_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// How the first replica cuts its part of a batch.
struct BatchCut {
  int64_t batch = 1;  ///< rows of the part
  int64_t rows = 1;   ///< of a micro-batch; the last has what is left
};

/// Of the largest batch, with so many training samples: data.batch_size may be above them.
BatchCut cut_of_batch(const Config& config, int64_t samples) {
  const auto& [batch, pipeline] = std::tie(config.data.batch_size, config.pipeline);
  const int64_t full = part_of_batch(batch, 0, pipeline.replicas).rows;
  const int64_t found = part_of_batch(std::min(batch, samples), 0, pipeline.replicas).rows;
  const int64_t largest = std::max<int64_t>(found, 1);
  return {largest, std::min((full + pipeline.micro_batches - 1) / pipeline.micro_batches, largest)};
}

/// Throws InputError where there is no room for a message of so many numbers and what comes of it.
void expect_room_for(int64_t numbers, int64_t rows) {
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(numbers);
  const auto free = static_cast<double>(free_memory());
  if (bytes <= free) return;
  throw InputError(
      "data.batch_size: a message of {} between stages, and what is received of it, take {:.3g} GB; {:.3g} GB "
      "are free; expected fewer, or more pipeline.micro_batches",
      count_text(rows, "sample"), bytes / 1e9, free / 1e9);
}

/// How often a batch crosses the boundaries, in the steps where it does so most often.
int64_t passes_of(const Config& config) {
  const LinkOptions& replicas = config.compression.replicas;
  return config.pipeline.replicas > 1 && make_link(replicas.codec, replicas.feedback)->needs_previous() ? 2 : 1;
}

/// Throws InputError where a message costs more than it saves.
void expect_savings(const BoundaryEndpoints& boundary, const ChannelEndpoints& channel,
                    const Traffic& traffic) {
  const uint64_t payloads = traffic.wire_bytes - traffic.messages * kFrameHeaderSize;
  if (payloads <= traffic.raw_bytes) return;
  throw InputError(
      "boundary {}, {}: codec \"{}\" makes {} bytes of a message of {}; expected no more than there are "
      "without compression",
      boundary.name, &channel == &boundary.activations ? "activations" : "gradients",
      channel.link->codec().spec(), payloads, traffic.raw_bytes);
}

/// The second message of each direction, which is not the first one again: a scheme may send differences.
Traffic message_traffic(BoundaryEndpoints& boundary, const at::Tensor& x) {
  std::vector<int64_t> ids(static_cast<size_t>(x.size(0)));
  std::iota(ids.begin(), ids.end(), 0);
  Traffic traffic;
  for (const auto& [step, message] : {std::pair(uint64_t{0}, x), {1, x.neg()}}) {
    traffic = {};
    for (ChannelEndpoints* channel : {&boundary.activations, &boundary.gradients}) {
      channel->cross(message, {.step = step, .ids = ids, .classes = ids});
      const Traffic of_channel = channel->take_traffic();
      if (step > 0) expect_savings(boundary, *channel, of_channel);
      traffic += of_channel;
    }
  }
  return traffic;
}

/// The rows of micro-batches that a set of so many samples gives, some of which may be fewer than those of the
/// first.
std::set<int64_t> rows_of_micro_batches(const Config& config, int64_t samples) {
  const auto& [batch, pipeline] = std::tie(config.data.batch_size, config.pipeline);
  std::set<int64_t> found;
  for (const int64_t of_batch : {std::min(batch, samples), samples % batch}) {
    for (int replica = 0; replica < pipeline.replicas; ++replica) {
      const int64_t full = part_of_batch(batch, replica, pipeline.replicas).rows;
      const int64_t rows = std::max<int64_t>(1, (full + pipeline.micro_batches - 1) / pipeline.micro_batches);
      const int64_t part = part_of_batch(of_batch, replica, pipeline.replicas).rows;
      found.insert({std::min(rows, part), part % rows});
    }
  }
  found.erase(0);
  return found;
}

/// Throws InputError, as a codec does in mid-run, where a link does not take a message of so many samples.
void expect_taken(const BoundaryEndpoints& boundary, const std::vector<int64_t>& sample_shape,
                  const std::set<int64_t>& of_training, const std::set<int64_t>& of_test) {
  const auto expect = [&](const ChannelEndpoints& channel, const std::set<int64_t>& all_rows) {
    for (const int64_t rows : all_rows) {
      std::vector<int64_t> shape = sample_shape;
      shape.insert(shape.begin(), rows);
      channel.link->payload_size({.shape = shape});
    }
  };
  expect(boundary.activations, of_training);
  expect(boundary.activations, of_test);
  expect(boundary.gradients, of_training);
}

/// A message of the network's input, which crosses forward.
Traffic input_traffic(const Model& model, int64_t rows) {
  std::vector<int64_t> shape = model.sample_shape;
  shape.insert(shape.begin(), rows);
  ChannelEndpoints channel({.boundary_name = "input", .link = integer_links(model.passed_below).activations});
  channel.cross(at::zeros(shape, at::kLong), {});
  return channel.take_traffic();
}

std::string scheme_text(const LinkOptions& link) {
  return link.feedback == kNoFeedback ? link.codec : link.codec + " with " + link.feedback;
}

/// Values of the model that training changes, each counted once.
int64_t parameters_of(const Model& model) {
  int64_t count = 0;
  for (const auto& [name, parameter] : model.named_parameters()) {
    const bool tied =
        std::ranges::any_of(model.ties, [&key = name](const auto& tie) { return tie.second == key; });
    if (!tied) count += parameter.numel();
  }
  return count;
}

std::string stages_line(const Config& config, int64_t samples, int processes) {
  const auto& pipeline = config.pipeline;
  const int64_t stages = static_cast<int64_t>(config.model.cuts.size()) + 1;
  std::string line = fmt::format("{} in {}", count_text(stages, "stage"), count_text(processes, "process"));
  if (stages > 1) line += ", cut after " + list_of(config.model.cuts);
  if (pipeline.replicas > 1) line += fmt::format("; {} replicas", pipeline.replicas);
  const BatchCut cut = cut_of_batch(config, samples);
  return line + fmt::format("; {}, {} of {}{}", pipeline.schedule,
                            count_text((cut.batch + cut.rows - 1) / cut.rows, "micro-batch"),
                            cut.batch % cut.rows == 0 ? "" : "up to ", count_text(cut.rows, "sample"));
}

std::string data_line(const Config& config, const DataSplits& data) {
  const DataKind& kind = data_kind(config.data.kind);
  const auto& settings = config.data.settings;
  std::string line = kind.name;
  if (settings.has("train_file")) {
    line += " in " + settings.text("train_file");
  } else if (kind.is_in_files) {
    line += " in " + config.data.root;
  }
  line += fmt::format(": {} and {}", count_text(data.train->size(), "training sample"),
                      count_text(data.test->size(), "test sample"));
  if (kind.is_text) line += fmt::format(" of {} tokens", settings.integer("block"));
  return kind.task.empty() ? line + ", for " + task_of(config.data).name : line;
}

/// What an emulated link is between; empty where there is none.
std::string link_line(const Config& config, int processes) {
  const auto& pipeline = config.pipeline;
  if (pipeline.link.empty() || (config.model.cuts.empty() && pipeline.replicas == 1)) return "";
  return fmt::format("{}, emulated between {}", link_rate_text(parse_link_rate(pipeline.link, "pipeline.link")),
                     processes > 1 ? "processes" : "stages");
}

/// The kind of schedule, and the rate of the last of so many steps where it is another than lr.
std::string rates_text(const TrainOptions& train, int64_t all_steps) {
  const SchedulePoint last{.epoch = train.epochs - 1, .step = all_steps - 1, .all_steps = all_steps};
  const double rate = learning_rate(train.schedule, train.optimizer.lr, last);
  return rate == train.optimizer.lr ? train.schedule.kind
                                    : fmt::format("{} to {:.3g}", train.schedule.kind, rate);
}

std::string training_line(const Config& config, int64_t samples) {
  const auto& train = config.train;
  const StepPlan plan(samples, config.data.batch_size, train, config.pipeline);
  return fmt::format("{} of {} with {}; {}, learning rate {}, {}", count_text(train.epochs, "epoch"),
                     count_text(plan.steps(), "step"),
                     count_text(std::min(plan.samples_of_step(), samples), "sample"), train.optimizer.kind,
                     train.optimizer.lr, rates_text(train, train.epochs * plan.steps()));
}

std::string scheme_text(const BoundaryScheme& scheme, bool reuse_indices) {
  return fmt::format(
      "activations {}, gradients {}", scheme_text(scheme.activations),
      reuse_indices ? scheme.gradients.codec + " at the same indices" : scheme_text(scheme.gradients));
}

std::string compression_line(const CompressionOptions& compression, int replicas, int epochs) {
  const bool reuse = compression.reuse_indices;
  std::string line = scheme_text({compression.activations, compression.gradients}, reuse);
  for (const auto& own : compression.boundaries) {
    line += fmt::format("; at {} {}", own.name, scheme_text(compression.at(own.name), reuse));
  }
  if (chooses_codecs(compression)) line += "; auto of " + list_of(compression.automatic.ladder);
  if (replicas > 1) line += ", between replicas " + scheme_text(compression.replicas);
  if (compression.start_epoch >= epochs) {
    line += fmt::format("; in no epoch, because compression.start_epoch is {} and train.epochs {}",
                        compression.start_epoch, epochs);
  } else if (compression.start_epoch > 0) {
    line += fmt::format("; from epoch {}", compression.start_epoch + 1);
  }
  if (compression.end_epoch > 0) line += fmt::format("; to epoch {}", compression.end_epoch);
  return line;
}

std::string bytes_line(const Traffic& traffic, bool is_strongest) {
  return fmt::format("{} per step expected{}, {} without compression: ratio {:.1f}",
                     count_text(static_cast<int64_t>(traffic.wire_bytes), "byte"),
                     is_strongest ? " with the strongest codec of auto" : "",
                     count_text(static_cast<int64_t>(traffic.raw_bytes), "byte"), traffic.ratio());
}

}  // namespace

Traffic expected_traffic(const Config& config, Model& model, int64_t samples, int64_t test_samples) {
  const auto shapes = boundary_shapes(model, cut_into_stages(model, config.model.cuts));
  CompressionOptions compression = with_strongest_codecs(config.compression);
  compression.store.place = "memory";
  const int64_t rows = cut_of_batch(config, samples).rows;
  int64_t largest = 0;
  for (const auto& shape : shapes) largest = std::max(largest, rows * elements_of(shape));
  expect_room_for(largest, rows);
  const at::Tensor noise = at::randn({largest}, at::detail::createCPUGenerator(config.seed), at::kFloat);
  const StepPlan plan(config.data.batch_size, config.data.batch_size, config.train, config.pipeline);
  const auto crossing = static_cast<double>(std::min(plan.samples_of_step(), samples) * passes_of(config));
  const auto of_training = rows_of_micro_batches(config, samples);
  const auto of_test = rows_of_micro_batches(config, test_samples);
  Traffic all;
  for (size_t i = 0; i < shapes.size(); ++i) {
    std::vector<int64_t> shape = shapes[i];
    shape.insert(shape.begin(), rows);
    BoundaryEndpoints boundary(config.model.cuts[i], static_cast<uint16_t>(i),
                               links_of(compression, config.model.cuts[i]), 0, BoundaryEndpoints::Local{});
    expect_taken(boundary, shapes[i], of_training, of_test);
    Traffic message = message_traffic(boundary, noise.narrow(0, 0, elements_of(shape)).view(shape));
    if (model.passed_below > 0) message += input_traffic(model, rows);
    const double messages = crossing / static_cast<double>(rows);
    all.raw_bytes += static_cast<uint64_t>(messages * static_cast<double>(message.raw_bytes));
    all.wire_bytes += static_cast<uint64_t>(messages * static_cast<double>(message.wire_bytes));
  }
  return all;
}

std::vector<std::string> start_summary(const Config& config, const std::filesystem::path& folder, Model& model,
                                       const DataSplits& data, int processes, int processes_here) {
  cut_into_stages(model, config.model.cuts);
  std::vector<std::string> lines;
  const auto add = [&](std::string_view what, const std::string& line) {
    lines.push_back(fmt::format("{:<12} {}", what, line));
  };
  add("run", fmt::format("{}, into {}", config.name, folder.string()));
  const std::string width = config.model.settings.has("width")
                                ? fmt::format(", width {}", config.model.settings.integer("width"))
                                : "";
  add("model",
      fmt::format("{}{}, {}", config.model.kind, width, count_text(parameters_of(model), "parameter")));
  add("stages", stages_line(config, data.train->size(), processes));
  add("data", data_line(config, data));
  add("training", training_line(config, data.train->size()));
  if (!config.model.cuts.empty()) {
    add("compression", compression_line(config.compression, config.pipeline.replicas, config.train.epochs));
    add("messages", bytes_line(expected_traffic(config, model, data.train->size(), data.test->size()),
                               chooses_codecs(config.compression)));
  }
  const std::string link = link_line(config, processes);
  if (!link.empty()) add("link", link);
  const int threads = at::get_num_threads();
  add("device", fmt::format("{}, {}{}", device_of(config.train.device).str(), count_text(threads, "thread"),
                            processes_here > 1 ? " in each process" : ""));
  const std::string note =
      crowding_note(threads, processes_here, usable_cores(), load_of_others(processes_here));
  if (!note.empty()) lines.push_back(note);
  return lines;
}

std::string summary_of_rank(const Config& config, const Model& model, const RankTopology& place) {
  const auto ranges = cut_into_stages(model, config.model.cuts);
  const int ranks = place.pipeline_ranks();
  std::vector<std::string> names;
  int64_t parameters = 0;
  for (size_t stage = 0; stage < ranges.size(); ++stage) {
    if (static_cast<int>(stage) % ranks != place.rank % ranks) continue;
    const auto& range = ranges[stage];
    names.push_back(
        fmt::format("{} ({}..{})", stage, model.layers[range.begin].name, model.layers[range.end - 1].name));
    parameters += parameters_of(model.part(range));
  }
  return fmt::format("rank {} of {}: {} {}{}, {}", place.rank, place.ranks,
                     names.size() == 1 ? "stage" : "stages", list_of(names),
                     place.replicas > 1 ? fmt::format(" of replica {}", place.replica()) : "",
                     count_text(parameters, "parameter"));
}

}  // namespace strait
