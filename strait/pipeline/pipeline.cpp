#include "strait/pipeline/pipeline.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <xxhash.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "strait/base/clock.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/links/sample_store.h"
#include "strait/pipeline/setup_check.h"
#include "strait/transport/handshake.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr int64_t kIntegersMost = int64_t{1} << 32;  // of those that cross a cut

/// The pipeline of this process's replica.
std::shared_ptr<Group> own_pipeline(const std::shared_ptr<Group>& group, int replicas) {
  if (replicas < 1 || group->size() % replicas != 0) {
    throw InputError("replicas: expected a number that divides the {} processes, found {}", group->size(),
                     replicas);
  }
  return pipeline_of(group, {group->rank(), group->size(), replicas});
}

int stages_per_rank(size_t stages, int ranks) { return ranks == 1 ? 1 : static_cast<int>(stages) / ranks; }

void check_ranks(size_t stages, int ranks) {
  if (ranks == 1 || stages % static_cast<size_t>(ranks) == 0) return;
  throw InputError("a replica of {} processes: expected a number that divides the {} stages", ranks, stages);
}

/// Tells a batch from others by its targets, which every process may have; 0 where they are not in host memory.
uint16_t mark_of(const at::Tensor& targets) {
  if (!targets.defined() || !targets.device().is_cpu()) return 0;
  const at::Tensor dense = targets.contiguous();
  const uint64_t sum = XXH3_64bits(dense.data_ptr(), dense.nbytes());
  return std::max<uint16_t>(static_cast<uint16_t>(sum), 1);
}

/// What crosses a cut in a batch of inputs of another shape, and in the one before.
void expect_alike(const Boundary& boundary, size_t stage, const std::vector<CutTensor>& now,
                  const std::vector<CutTensor>& before) {
  const auto type = [](const CutTensor& tensor) { return tensor.type; };
  if (!std::ranges::equal(now, before, {}, type, type)) {
    throw InputError("stage {} gives {} tensors of other types than {} in the first batch", stage, now.size(),
                     before.size());
  }
  if (!boundary.links.activations->keeps_state() && !boundary.links.gradients->keeps_state()) return;
  for (size_t i = 0; i < now.size(); ++i) {
    if (now[i].shape == before[i].shape) continue;
    throw InputError(
        "boundary {}: its feedback keeps rows of shape {}, found {}; expected batches of one shape",
        boundary.name, shape_text(before[i].shape), shape_text(now[i].shape));
  }
}

void check_rows(const at::Tensor& tensor, int64_t rows, std::string_view what) {
  if (tensor.defined() && tensor.dim() > 0 && tensor.size(0) == rows) return;
  throw InputError("the {} of a batch of {} rows: expected a tensor of shape [{}, ...], found {}", what, rows,
                   rows, tensor.defined() ? shape_text(tensor.sizes()) : "none");
}

/// Replicas must begin with the same weights, or their sums of gradients would mean nothing.
void check_alike(Group& group, const std::map<std::string, uint64_t>& checksums) {
  std::map<std::string, std::pair<uint64_t, size_t>> first;
  const auto all = group.gather(json(checksums).dump());
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const json theirs = parse_json<WireError>(all[rank], "the checksums of another rank");
    for (const auto& [stage, sum] : theirs.items()) {
      const auto [place, is_new] = first.try_emplace(stage, sum.get<uint64_t>(), rank);
      if (is_new || place->second.first == sum.get<uint64_t>()) continue;
      throw Error("{}: the weights of rank {} are not those of rank {}; replicas expect the same ones", stage,
                  rank, place->second.second);
    }
  }
}

json to_json(const Traffic& traffic) {
  return {traffic.messages, traffic.raw_bytes, traffic.wire_bytes, traffic.encode_seconds,
          traffic.decode_seconds};
}

Traffic traffic_of(const json& numbers) {
  return {.messages = numbers.at(0),
          .raw_bytes = numbers.at(1),
          .wire_bytes = numbers.at(2),
          .encode_seconds = numbers.at(3),
          .decode_seconds = numbers.at(4)};
}

/// The gradients that parameters have before a batch, which stand aside while replicas sum its own.
class EarlierGradients {
 public:
  explicit EarlierGradients(std::vector<at::Tensor> parameters) : parameters_(std::move(parameters)) {
    for (const auto& parameter : parameters_) {
      earlier_.push_back(parameter.grad());
      if (earlier_.back().defined()) parameter.mutable_grad().reset();
    }
  }
  EarlierGradients(const EarlierGradients&) = delete;
  EarlierGradients& operator=(const EarlierGradients&) = delete;

  /// Adds those of the batch to them.
  void add() {
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (!earlier_[i].defined()) continue;
      const at::Tensor& own = parameters_[i].grad();
      if (own.defined()) earlier_[i].add_(own);
      parameters_[i].mutable_grad() = earlier_[i];
    }
  }

 private:
  std::vector<at::Tensor> parameters_;
  std::vector<at::Tensor> earlier_;
};

}  // namespace

int64_t PipelineBatch::rows() const {
  const bool has_inputs = !inputs.empty() && inputs.front().defined();
  const at::Tensor& rows = has_inputs ? inputs.front() : targets;
  if (!rows.defined()) return static_cast<int64_t>(ids.size());
  return rows.dim() > 0 ? rows.size(0) : 0;
}

Pipeline::Pipeline(PipelineSetup setup, std::shared_ptr<Group> group)
    : setup_(std::move(setup)), group_(std::move(group)) {
  if (!setup_.replica_link) setup_.replica_link = make_link(kUncompressed);
  check_handshakes(group_->rank(), group_->gather(setup_text(setup_, group_->size())));
  run_collectively(*group_, [&] {
    check_schedule(setup_.schedule);
    check_boundaries(setup_);
    pipeline_ = own_pipeline(group_, setup_.replicas);
    const int ranks = pipeline_->size();
    check_ranks(setup_.stages.size(), ranks);
    const ScheduleSize size{static_cast<int>(setup_.stages.size()), setup_.micro_batches,
                            stages_per_rank(setup_.stages.size(), ranks)};
    rank_of_stage_ = setup_.schedule.plan(size).rank_of_stage;
    if (ranks == 1) std::ranges::fill(rank_of_stage_, 0);
    check();
  });
  cut_finder_.emplace(
      setup_.stages, [this](int stage) { return runs(stage); }, setup_.device, *pipeline_);
}

bool Pipeline::has_slots(Slots slots) const {
  return std::ranges::any_of(setup_.boundaries, [=](const Boundary& boundary) {
    return boundary.links.activations->slots() == slots || boundary.links.gradients->slots() == slots;
  });
}

void Pipeline::check() const {
  for (size_t stage = 0; stage < setup_.stages.size(); ++stage) {
    if (runs(static_cast<int>(stage)) && !setup_.stages[stage]) {
      throw InputError("stage {}: is empty, but rank {} runs it", stage, group_->rank());
    }
  }
  check_replica_link(*setup_.replica_link);
  if (setup_.batch_size < 0) throw InputError("batch_size: expected 0 or more, found {}", setup_.batch_size);
  check_parameters(setup_, [this](int stage) { return runs(stage); });
}

void Pipeline::prepare(const TensorList& inputs, int64_t rows, const TensorList& extras) {
  const Cuts& cuts = cut_finder_->cuts_of(inputs, extras, rows);
  if (!executor_) {
    cuts_ = cuts;
    make_executor(rows);
  } else if (cuts != cuts_) {
    take_cuts(cuts);
  }
}

/// Another batch's, which must be of as many tensors of the same types.
void Pipeline::take_cuts(const Cuts& cuts) {
  std::vector<std::vector<int64_t>> sample_shapes;
  std::vector<bool> gradients;
  for (size_t cut = 0; cut < cuts_.size(); ++cut) {
    expect_alike(setup_.boundaries[cut], cut, cuts[cut], cuts_[cut]);
    for (const auto& tensor : cuts[cut]) {
      sample_shapes.push_back(tensor.shape);
      gradients.push_back(tensor.has_gradient);
    }
  }
  cuts_ = cuts;
  executor_->set_crossing(std::move(sample_shapes), std::move(gradients));
}

void Pipeline::make_executor(int64_t rows) {
  Executor::Setup setup;
  setup.stage_count = static_cast<int>(setup_.stages.size());
  setup.rank = pipeline_->rank();
  setup.ranks = pipeline_->size();
  setup.schedule = setup_.schedule;
  setup.micro_batches = setup_.micro_batches;
  setup.stages_per_rank = stages_per_rank(setup_.stages.size(), pipeline_->size());
  setup.batch_size = std::max(setup_.batch_size, rows);
  setup.seed = setup_.seed;
  setup.device = setup_.device;
  for (int stage = 0; stage < setup.stage_count; ++stage) {
    if (!runs(stage)) continue;
    const bool is_last = stage + 1 == setup.stage_count;
    const auto at = static_cast<size_t>(stage);
    setup.stages.try_emplace(
        stage,
        between_cuts(setup_.stages[at].forward(), stage, stage == 0 ? nullptr : &cuts_[at - 1],
                     is_last ? nullptr : &cuts_[at]),
        is_last ? loss_of_last_stage() : StageLoss(), stage == 0);
  }
  std::vector<int> peers;
  std::vector<std::string> names;
  for (size_t cut = 0; cut < cuts_.size(); ++cut) {
    const Boundary& boundary = setup_.boundaries[cut];
    const int above = rank_of_stage_[cut];
    const int below = rank_of_stage_[cut + 1];
    const BoundaryEndpoints::Local local{.upstream = above == pipeline_->rank(),
                                         .downstream = below == pipeline_->rank()};
    setup.tensors_at_cut.push_back(static_cast<int>(cuts_[cut].size()));
    for (size_t i = 0; i < cuts_[cut].size(); ++i) {
      names.push_back(cuts_[cut].size() == 1 ? boundary.name : fmt::format("{}.{}", boundary.name, i));
      const bool integers = cuts_[cut][i].is_integer();
      setup.gradients.push_back(cuts_[cut][i].has_gradient);
      setup.boundaries.emplace_back(names.back(), static_cast<uint16_t>(setup.boundaries.size()),
                                    integers ? integer_links(kIntegersMost) : boundary.links,
                                    integers ? 0 : boundary.diagnostics, local);
      setup.sample_shapes.push_back(cuts_[cut][i].shape);
      peers.push_back(local.upstream ? below : local.downstream ? above : -1);
    }
  }
  transport_ = pipeline_->make_transport(std::move(peers), std::move(names));
  executor_.emplace(std::move(setup), *transport_, setup_.trace);
  make_data_parallel();
}

/// The user's, or what takes the outputs while predict() wants them.
StageLoss Pipeline::loss_of_last_stage() {
  return [this](const TensorList& output, const at::Tensor& targets) -> Loss {
    if (outputs_ == nullptr) return setup_.loss.function()(output, targets);
    outputs_->push_back(output);
    return {.mean = at::zeros({}), .correct = 0, .count = targets.size(0)};
  };
}

void Pipeline::make_data_parallel() {
  std::vector<DataParallel::Stage> own;
  for (const auto& [stage, parameter] : own_parameters()) {
    first_parameters_.push_back({parameter, parameter.requires_grad()});
    if (!parameter.requires_grad()) continue;
    const auto number = static_cast<int>(stage);
    if (own.empty() || own.back().number != number) own.push_back({number, fmt::format("stage {}", stage), {}});
    own.back().parameters.push_back(parameter);
  }
  data_parallel_.emplace(*group_, topology(), static_cast<int>(setup_.stages.size()), std::move(own),
                         setup_.replica_link, setup_.seed);
  check_alike(*group_, data_parallel_->weight_checksums());
}

/// Replicas exchange the gradients of what was trained when the first batch came.
void Pipeline::check_trained() const {
  if (setup_.replicas == 1) return;
  const auto own = own_parameters();
  for (size_t i = 0; i < own.size(); ++i) {
    const auto& [stage, parameter] = own[i];
    const char* change = nullptr;
    if (i >= first_parameters_.size() || !first_parameters_[i].tensor.is_same(parameter)) {
      change = "another tensor";
    } else if (first_parameters_[i].trained != parameter.requires_grad()) {
      change = parameter.requires_grad() ? "trained" : "frozen";
    }
    if (change == nullptr) continue;
    throw InputError(
        "stage {}: a parameter of shape {} is {} since the first batch; replicas expect a new pipeline then",
        stage, shape_text(parameter.sizes()), change);
  }
  if (own.size() < first_parameters_.size()) {
    throw InputError("{} parameters are gone since the first batch; replicas expect a new pipeline then",
                     first_parameters_.size() - own.size());
  }
}

/// How much the mean over some rows counts in the batch's; null where that is their share in the rows.
std::function<double(int64_t, int64_t)> Pipeline::weigh(const at::Tensor& targets) const {
  const auto& count = setup_.loss.count();
  if (!is_last_here() || !count) return nullptr;
  const int64_t all = count(targets);
  if (all <= 0)
    throw InputError("a batch of {} rows: expected targets that the loss counts, found none", targets.size(0));
  return [this, targets, all](int64_t first_row, int64_t rows) {
    const int64_t own = setup_.loss.count()(targets.narrow(0, first_row, rows));
    return static_cast<double>(own) / static_cast<double>(all) / setup_.replicas;
  };
}

StepInput Pipeline::input_of(const PipelineBatch& batch) const {
  if (outputs_ == nullptr && is_last_here() && !setup_.loss)
    throw InputError("a batch: expected a pipeline with a loss, or predict()");
  const int64_t rows = batch.rows();
  if (rows <= 0) throw InputError("a batch: expected inputs, targets or ids that say how many rows it has");
  if (runs(0)) {
    if (batch.inputs.empty()) throw InputError("a batch of {} rows: expected inputs", rows);
    for (const auto& input : batch.inputs) check_rows(input, rows, "inputs");
  }
  if (is_last_here()) check_rows(batch.targets, rows, "targets");
  for (const auto& extra : batch.extras) check_rows(extra, rows, "extras");
  if (!batch.ids.empty() && static_cast<int64_t>(batch.ids.size()) != rows) {
    throw InputError("a batch of {} rows: expected an id for each, found {}", rows, batch.ids.size());
  }
  if (!batch.classes.empty() && static_cast<int64_t>(batch.classes.size()) != rows) {
    throw InputError("a batch of {} rows: expected a class for each, found {}", rows, batch.classes.size());
  }
  StepInput input{.inputs = batch.inputs, .targets = batch.targets, .step = step_, .rows = rows};
  if (pipeline_->size() > 1 && outputs_ == nullptr) input.mark = mark_of(batch.targets);
  input.ids = batch.ids;
  input.classes = batch.classes;
  for (const auto& extra : batch.extras) input.extras.push_back(extra.detach());
  return input;
}

StepReport Pipeline::run(const PipelineBatch& batch,
                         const std::function<StepResult(Executor&, const StepInput&)>& work) {
  const Stopwatch watch;
  if (failed_) {
    throw Error(
        "an earlier batch failed, and with it the group of processes; expected a new pipeline in new "
        "processes");
  }
  try {
    const StepInput input = input_of(batch);
    prepare(batch.inputs, input.rows, input.extras);
    executor_->set_batch_size(std::max(setup_.batch_size, input.rows));
    const StepResult result = work(*executor_, input);
    StepReport report;
    report.rows = input.rows;
    report.correct = result.correct;
    if (result.count > 0) report.loss = result.loss_sum / static_cast<double>(result.count);
    report.traffic = take_traffic();
    report.seconds = watch.seconds();
    return report;
  } catch (const std::exception& error) {
    failed_ = group_->size() > 1;
    group_->fail(failure_of(error, group_->rank()));
    throw;
  }
}

StepReport Pipeline::train(const PipelineBatch& batch) {
  return run(batch, [&](Executor& executor, StepInput input) {
    if (setup_.batch_size == 0) setup_.batch_size = input.rows;
    if (input.rows > setup_.batch_size) {
      throw InputError(
          "a batch of {} rows: expected at most batch_size, {}, which is that of the first one unless given",
          input.rows, setup_.batch_size);
    }
    if (batch.ids.empty() && has_slots(Slots::samples)) {
      throw InputError(
          "a boundary keeps something per sample, so that a batch is expected to come with the ids of its "
          "rows");
    }
    if (has_slots(Slots::samples)) expect_distinct(fmt::format("a batch of {} rows", input.rows), batch.ids);
    if (batch.classes.empty() && has_slots(Slots::classes)) {
      throw InputError(
          "a boundary keeps something per class, so that a batch is expected to come with the classes of its "
          "rows");
    }
    check_trained();
    input.next_ids = std::exchange(next_ids_, {});
    input.all_rows = input.rows * setup_.replicas;
    input.first_row = input.rows * replica();
    input.weigh = weigh(batch.targets);
    EarlierGradients earlier(setup_.replicas > 1 ? parameters() : TensorList());
    const StepResult result = executor.train(input, compressed_);
    data_parallel_->sum_gradients(step_, {.training = true, .compressed = compressed_});
    earlier.add();
    step_ += 1;
    return result;
  });
}

StepReport Pipeline::evaluate(const PipelineBatch& batch, EvaluationMode mode) {
  return run(batch, [&](Executor& executor, const StepInput& input) { return executor.evaluate(input, mode); });
}

TensorList Pipeline::predict(PipelineBatch batch, EvaluationMode mode) {
  batch.targets = at::Tensor();
  const int64_t rows = batch.rows();
  if (is_last_here() && rows > 0) batch.targets = at::zeros({rows});
  std::vector<TensorList> parts;
  outputs_ = &parts;
  try {
    run(batch, [&](Executor& executor, const StepInput& input) { return executor.evaluate(input, mode); });
  } catch (...) {
    outputs_ = nullptr;
    throw;
  }
  outputs_ = nullptr;
  TensorList all;
  for (size_t i = 0; !parts.empty() && i < parts.front().size(); ++i) {
    TensorList of_rows;
    for (const auto& part : parts) of_rows.push_back(part[i]);
    all.push_back(at::cat(of_rows));
  }
  return all;
}

double Pipeline::clip_grad_norm(double limit) {
  if (!(limit > 0)) {
    const InputError error("a norm of gradients: expected a limit above 0, found {}", limit);
    group_->fail(failure_of(error, group_->rank()));
    throw error;
  }
  std::vector<StageParameter> trained = own_parameters();
  std::erase_if(trained,
                [](const auto& each) { return !each.second.requires_grad(); });  // what they have is old
  std::vector<at::Tensor> scaled;
  scaled.reserve(trained.size());
  for (const auto& [stage, parameter] : trained) scaled.push_back(parameter);
  return clip_gradients(trained, scaled, setup_.stages.size(), limit, *pipeline_);
}

Traffic Pipeline::take_traffic() {
  Traffic sum;
  for (BoundaryEndpoints& boundary : executor_->boundaries()) {
    sum += boundary.activations.take_traffic();
    sum += boundary.gradients.take_traffic();
  }
  if (const auto replicas = data_parallel_->take_traffic()) sum += *replicas;
  return sum;
}

void Pipeline::visit_state(StateVisitor& visitor) {
  for (BoundaryEndpoints& boundary : boundaries()) boundary.visit_state(visitor);
  if (data_parallel_) data_parallel_->visit_state(visitor);
}

std::vector<BoundaryEndpoints>& Pipeline::boundaries() {
  static std::vector<BoundaryEndpoints> none;
  return executor_ ? executor_->boundaries() : none;
}

std::vector<StageParameter> Pipeline::own_parameters() const {
  std::vector<StageParameter> all;
  for (size_t stage = 0; stage < setup_.stages.size(); ++stage) {
    if (!runs(static_cast<int>(stage))) continue;
    for (const auto& parameter : setup_.stages[stage].parameters()) all.emplace_back(stage, parameter);
  }
  return all;
}

std::vector<at::Tensor> Pipeline::parameters() const {
  std::vector<at::Tensor> all;
  for (auto& [stage, parameter] : own_parameters()) all.push_back(std::move(parameter));
  return all;
}

StepReport Pipeline::gather(const StepReport& mine) {
  const json text{{"loss", mine.loss ? json(*mine.loss) : json()},
                  {"rows", mine.rows},
                  {"correct", mine.correct},
                  {"traffic", to_json(mine.traffic)},
                  {"seconds", mine.seconds}};
  StepReport all;
  double losses = 0;
  int parts = 0;
  for (const auto& part : group_->gather(text.dump())) {
    const json theirs = parse_json<WireError>(part, "the report of another rank");
    if (!theirs.at("loss").is_null()) {
      losses += theirs.at("loss").get<double>();
      parts += 1;
      all.rows += theirs.at("rows").get<int64_t>();
    }
    all.correct += theirs.at("correct").get<int64_t>();
    all.traffic += traffic_of(theirs.at("traffic"));
    all.seconds = std::max(all.seconds, theirs.at("seconds").get<double>());
  }
  if (parts > 0) all.loss = losses / parts;
  return all;
}

}  // namespace strait
