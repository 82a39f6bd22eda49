#include "strait/train/automatic_codecs.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/multiples.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr int64_t kFirstBatches = 4;    // before the first choice: the first of them warms up
constexpr uint64_t kAgain = 2;          // times the steps before a choice are those before the next
constexpr int64_t kRowsToBegin = 4;     // whose messages say what to begin with
constexpr int64_t kWatchedBatches = 8;  // before a choice
constexpr uint64_t kEarlySteps = 8;     // whose gradients are not watched: they say little of the later ones
constexpr double kNoError = 0.02;       // that turns nothing
constexpr double kSurest = 0.99;        // the cosine of other small errors: what is lost beyond cannot be seen

/// The strongest codec whose error is at most that, or else the one with the least.
size_t strongest_within(const std::vector<double>& errors, double most) {
  size_t best = 0;
  for (size_t rung = 1; rung < errors.size(); ++rung) {
    if (errors[rung] <= most || errors[rung] < errors[best]) best = rung;
  }
  return best;
}

/// As many as there are, without what links know of samples.
StepInput first_rows(const StepInput& batch, int64_t most) {
  const int64_t rows = std::min(batch.rows, most);
  StepInput part{.inputs = {}, .targets = batch.targets, .step = batch.step, .rows = rows};
  for (const auto& input : batch.inputs)
    part.inputs.push_back(input.defined() ? input.narrow(0, 0, rows) : input);
  if (part.targets.defined()) part.targets = part.targets.narrow(0, 0, rows);
  part.first_row = batch.first_row;
  return part;
}

bool is_of_one_batch(const KeptMessage& a, const KeptMessage& b) {
  return a.context.step == b.context.step && a.context.batch == b.context.batch;
}

/// One that cannot send the message costs what sending it raw does and loses all of it. Throws NumericError
/// where none can.
std::vector<CodecTrial> try_all(const KeptMessage& message,
                                const std::vector<std::shared_ptr<const Link>>& links) {
  std::vector<CodecTrial> trials;
  size_t failed = 0;
  for (const auto& link : links) {
    try {
      trials.push_back(try_link(message, link));
    } catch (const NumericError&) {
      if (++failed == links.size()) throw;
      trials.push_back({.bytes = static_cast<double>(message.tensor.nbytes()),
                        .relative_error = std::numeric_limits<double>::infinity()});
    }
  }
  return trials;
}

size_t place(Direction direction) { return static_cast<size_t>(direction); }

/// Of the stages in `all`, what came behind `before`.
TimesOfStages difference(TimesOfStages all, const TimesOfStages& before) {
  for (const auto& [stage, times] : before) {
    const auto found = all.find(stage);
    if (found == all.end() || found->second.micro_batches <= times.micro_batches) continue;
    found->second.forward_seconds -= times.forward_seconds;
    found->second.backward_seconds -= times.backward_seconds;
    found->second.micro_batches -= times.micro_batches;
  }
  return all;
}

}  // namespace

AutomaticCodecs::AutomaticCodecs(Executor& executor, Placement& placement, CompressionOptions asked,
                                 ChooseCodecs choose, bool links_are_no_limit)
    : executor_(executor),
      group_(placement.group()),
      asked_(std::move(asked)),
      choose_(std::move(choose)),
      links_are_no_limit_(links_are_no_limit),
      side_pass_(placement.own()) {
  if (!choose_) {
    throw InputError("compression: codec \"{}\" expects TrainerOptions::choose_codecs, found none", kAutoCodec);
  }
  for (const auto& codec : asked_.automatic.ladder) ladder_.push_back(make_link(codec));
}

bool AutomaticCodecs::is_chosen(const std::string& boundary, Direction direction) const {
  const auto [activations, gradients] = asked_.at(boundary);
  return (direction == Direction::activation ? activations : gradients).codec == kAutoCodec;
}

void AutomaticCodecs::begin(TrainingState& state) {
  const size_t strongest = ladder_.size() - 1;
  if (state.choices.empty()) state.choices.push_back(provisional({strongest, strongest}, state.step));
  starting_ = is_provisional(state) && state.choices.back().step == state.step;
  applied_.reset();
  apply(choice_of_last_step(state));
  layers_.clear();
  watched_.clear();
  for (const auto& boundary : executor_.boundaries()) {
    const auto seen = state.layers.find(boundary.name);
    if (seen == state.layers.end() || !is_watched(boundary)) continue;
    std::vector<LayerCosines::Sums> sums;
    for (const auto& codec : asked_.automatic.ladder) {
      const auto known = seen->second.find(codec);
      sums.push_back(known == seen->second.end() ? LayerCosines::Sums() : known->second);
    }
    layers_.try_emplace(boundary.name, ladder_).first->second.set_sums(std::move(sums));
  }
}

void AutomaticCodecs::take_in(TrainingState& state) {
  end_watch();
  state.layers = sums_here();
}

SumsOfLayers AutomaticCodecs::sums_here() const {
  SumsOfLayers all;
  for (const auto& [boundary, layer] : layers_) {
    for (size_t rung = 0; rung < ladder_.size(); ++rung)
      all[boundary][asked_.automatic.ladder[rung]] = layer.sums()[rung];
  }
  return all;
}

/// Of all boundaries, with what each replica has seen of them.
SumsOfLayers AutomaticCodecs::sums_of_all() const {
  SumsOfLayers all;
  for (const auto& text : group_.gather(layers_to_json(sums_here()).dump())) {
    const json part = parse_json<WireError>(text, "what gradients say of codecs");
    for (const auto& [boundary, codecs] : layers_in(part)) {
      for (const auto& [codec, sums] : codecs) all[boundary][codec] += sums;
    }
  }
  return all;
}

/// Those that are chosen where nothing is known yet.
CodecChoice AutomaticCodecs::provisional(const LadderRungs& rungs, uint64_t step) const {
  CodecChoice choice{.step = step, .boundaries = {}};
  for (const auto& boundary : executor_.boundaries()) {
    if (boundary.activations.link->carries_integers()) continue;
    const auto own = asked_.at(boundary.name);
    const auto codec = [&](Direction direction, const LinkOptions& asked) {
      return is_chosen(boundary.name, direction) ? asked_.automatic.ladder[rungs[place(direction)]]
                                                 : asked.codec;
    };
    choice.boundaries.push_back({boundary.name,
                                 {codec(Direction::activation, own.activations)},
                                 {codec(Direction::gradient, own.gradients)}});
  }
  return choice;
}

void AutomaticCodecs::start(TrainingState& state, const StepInput& batch) {
  put_everywhere({0, 0});
  keep_sent();
  std::vector<at::Tensor> gradients;
  const StepInput part = first_rows(batch, kRowsToBegin);
  side_pass_.run(gradients, [&] { executor_.trial(part); });
  const LadderErrors errors = greatest_errors(try_links());
  constexpr const char* kNoLimit = "no limit";
  const auto said = group_.gather(links_are_no_limit_ ? kNoLimit : "");
  const double budget = asked_.automatic.budget;
  const double most = budget > 0 ? budget : said.front() == kNoLimit ? 0 : kSmallError;
  state.choices.back() =
      provisional({strongest_within(errors[0], most), strongest_within(errors[1], most)}, state.step);
  starting_ = false;
  applied_.reset();
  apply(state.choices.back());
}

void AutomaticCodecs::before_batch(const TrainingState& state, int64_t steps, int64_t batches, int64_t epochs) {
  end_watch();
  const auto& choices = state.choices;
  const int64_t left = batches - state.batches - 1;
  if (state.batches == 0) warm_up_.clear();  // times begin anew with the epoch
  if (choices.back().step <= state.step) apply(choices.back());
  const auto ending = static_cast<uint64_t>(steps);
  const auto every = static_cast<uint64_t>(asked_.automatic.every_steps);
  const bool is_first = is_provisional(state) && (state.batches + 1 >= kFirstBatches || left == 0);
  const bool is_another = left == 0 || passes_multiple(every, state.step + ending, ending) ||
                          (!is_provisional(state) && state.step + ending >= kAgain * choices.back().step);
  const bool is_last_epoch = state.epoch + 1 == epochs;
  due_ = steps > 0 && (is_first || (is_another && !(left == 0 && is_last_epoch)));
  if (choices.back().watches_gradients && state.step >= kEarlySteps &&
      is_choice_near(state, steps, left, is_last_epoch)) {
    watch();
  }
  if (due_) keep_sent();
}

/// Whether the batch is among those before the next choice that are looked at; none comes behind the training's
/// last batch. Where not every batch ends a step, more of them are.
bool AutomaticCodecs::is_choice_near(const TrainingState& state, int64_t steps, int64_t left,
                                     bool is_last_epoch) const {
  const auto ending = static_cast<uint64_t>(std::max<int64_t>(steps, 1));
  const auto batches_to = [&](uint64_t step) -> int64_t {
    if (step <= state.step + ending) return 0;
    return static_cast<int64_t>((step - state.step + ending - 1) / ending) - 1;
  };
  int64_t next = batches_to(kAgain * state.choices.back().step);
  const auto every = static_cast<uint64_t>(asked_.automatic.every_steps);
  if (every > 0) next = std::min(next, batches_to((state.step / every + 1) * every));
  return is_last_epoch ? next < std::min(left, kWatchedBatches) : std::min(next, left) < kWatchedBatches;
}

/// Whether its gradients are chosen and sent here.
bool AutomaticCodecs::is_watched(const BoundaryEndpoints& boundary) const {
  return boundary.gradients.sender && !boundary.activations.link->carries_integers() &&
         is_chosen(boundary.name, Direction::gradient);
}

void AutomaticCodecs::watch() {
  watching_ = true;
  for (auto& boundary : executor_.boundaries()) {
    if (!is_watched(boundary)) continue;
    boundary.activations.receiver->keep_messages();
    boundary.gradients.sender->keep_messages();
  }
}

/// Behind the batch.
void AutomaticCodecs::end_watch() {
  if (!std::exchange(watching_, false)) return;
  for (auto& boundary : executor_.boundaries()) {
    if (is_watched(boundary)) add_watched(boundary, boundary.gradients.sender->take_kept());
  }
}

void AutomaticCodecs::keep_sent() {
  for (auto& boundary : executor_.boundaries()) {
    for (auto* channel : {&boundary.activations, &boundary.gradients}) {
      if (channel->sender) channel->sender->keep_messages();
    }
  }
}

/// The gradients that it has sent, to what is known of it: those of each batch together. Where a schedule
/// begins a batch before the one before it is done, the gradients of that come later.
void AutomaticCodecs::add_watched(BoundaryEndpoints& boundary, std::vector<KeptMessage> gradients) {
  LayerCosines& layer = layers_.try_emplace(boundary.name, ladder_).first->second;
  WatchedMessages& watched = watched_[boundary.name];
  std::ranges::move(boundary.activations.receiver->take_kept(), std::back_inserter(watched.activations));
  std::ranges::move(gradients, std::back_inserter(watched.gradients));
  WatchedMessages later;
  while (!watched.activations.empty()) {
    const KeptMessage first = watched.activations.front();
    const auto take = [&](std::vector<KeptMessage>& from) {
      const auto rest = std::stable_partition(from.begin(), from.end(), [&](const KeptMessage& message) {
        return !is_of_one_batch(message, first);
      });
      std::vector<KeptMessage> taken(std::make_move_iterator(rest), std::make_move_iterator(from.end()));
      from.erase(rest, from.end());
      return taken;
    };
    const auto arrived = take(watched.activations);
    const auto sent = take(watched.gradients);
    if (sent.size() == arrived.size()) {
      layer.add(arrived, sent, kNoError);
      continue;
    }
    std::ranges::copy(arrived, std::back_inserter(later.activations));
    std::ranges::copy(sent, std::back_inserter(later.gradients));
  }
  watched = std::move(later);  // gradients without activations were on their way before anything was watched
}

std::vector<std::shared_ptr<const Link>> AutomaticCodecs::links_to_try(const std::string& boundary,
                                                                       const ChannelEndpoints& channel,
                                                                       Direction direction) const {
  if (channel.link->carries_integers()) return {channel.link};
  if (is_chosen(boundary, direction)) return ladder_;
  return {make_link(channel.link->shared_codec())};  // without feedback, whose state is its own
}

/// On the first of the messages that were kept.
std::vector<TriedChannel> AutomaticCodecs::try_links() {
  std::vector<TriedChannel> channels;
  for (auto& boundary : executor_.boundaries()) {
    for (const Direction direction : {Direction::activation, Direction::gradient}) {
      ChannelEndpoints& channel = boundary.channel(direction);
      if (!channel.sender) continue;
      auto messages = channel.sender->take_kept();
      if (messages.empty()) continue;  // integers do not come back
      const KeptMessage& message = messages.front();
      TriedChannel& tried =
          channels.emplace_back(TriedChannel{boundary.name, direction, message.tensor.size(0), {}});
      tried.trials = try_all(message, links_to_try(boundary.name, channel, direction));
      if (direction == Direction::activation || !is_watched(boundary)) continue;
      add_watched(boundary, std::move(messages));
    }
  }
  return channels;
}

/// Those of its boundary's layer. Where nothing is known of that, a codec whose greatest error at any boundary
/// is not small turns all: at one of them it may be small by chance, where one value is far greater than the
/// others.
void AutomaticCodecs::put_cosines(TriedChannel& tried, const std::vector<double>& greatest_errors,
                                  const SumsOfLayers& seen) const {
  const auto layer = seen.find(tried.boundary);
  for (size_t rung = 0; rung < tried.trials.size(); ++rung) {
    std::optional<double> known;
    if (layer != seen.end()) known = layer->second.at(asked_.automatic.ladder[rung]).cosine();
    const double error = greatest_errors[rung];
    const double unknown = error <= kNoError ? 1 : error <= kSmallError ? kSurest : 0;
    tried.trials[rung].cosine = known ? std::min(*known, kSurest) : unknown;
  }
}

/// Over the boundaries of all processes.
AutomaticCodecs::LadderErrors AutomaticCodecs::greatest_errors(const std::vector<TriedChannel>& mine) const {
  json errors = json::array();
  for (const auto& channel : mine) {
    if (!is_chosen(channel.boundary, channel.direction)) continue;
    for (size_t rung = 0; rung < channel.trials.size(); ++rung)
      errors.push_back({place(channel.direction), rung, channel.trials[rung].relative_error});
  }
  LadderErrors greatest;
  for (auto& of_direction : greatest) of_direction.resize(ladder_.size(), 0);
  for (const auto& text : group_.gather(errors.dump())) {
    for (const auto& each : parse_json<WireError>(text, "the errors of the codecs")) {
      const json& error = each.at(2);  // JSON has no infinite one
      double& most = greatest.at(each.at(0)).at(each.at(1));
      most = std::max(most, error.is_null() ? std::numeric_limits<double>::infinity() : error.get<double>());
    }
  }
  return greatest;
}

void AutomaticCodecs::choose(TrainingState& state) {
  ChoiceFacts mine{.channels = try_links(),
                   .stages = difference(state.stages, warm_up_),
                   .since_last = since_last_.seconds()};
  const LadderErrors errors = greatest_errors(mine.channels);
  const SumsOfLayers seen = sums_of_all();
  for (auto& tried : mine.channels) {
    if (tried.direction == Direction::gradient && is_chosen(tried.boundary, tried.direction))
      put_cosines(tried, errors[place(Direction::gradient)], seen);
  }
  CodecChoice choice = choose_(mine, group_);
  choice.step = state.step;
  state.choices.push_back(std::move(choice));
  for (auto& [boundary, layer] : layers_) layer.fade();
  watched_.clear();
  is_warming_up_ = false;
  since_last_ = Stopwatch();
  watching_ = false;
  due_ = false;
}

void AutomaticCodecs::begin_epoch(TrainingState& state) {
  const auto holds = std::ranges::find_if(state.choices.rbegin(), state.choices.rend(),
                                          [&](const CodecChoice& choice) { return choice.step <= state.step; });
  if (holds != state.choices.rend()) state.choices.erase(state.choices.begin(), std::prev(holds.base()));
}

std::vector<CodecChoice> AutomaticCodecs::of_epoch(const TrainingState& state) {
  std::vector<CodecChoice> held = state.choices;
  std::erase_if(held, [&](const CodecChoice& choice) { return choice.step >= state.step; });
  return held;
}

/// Where the direction is chosen; elsewhere the link stays.
void AutomaticCodecs::put(BoundaryEndpoints& boundary, Direction direction, size_t rung) {
  ChannelEndpoints& channel = boundary.channel(direction);
  if (!is_chosen(boundary.name, direction) || channel.link->carries_integers()) return;
  if (channel.link != ladder_[rung]) channel.set_link(ladder_[rung]);
}

void AutomaticCodecs::put_everywhere(const LadderRungs& rungs) {
  for (auto& boundary : executor_.boundaries()) {
    for (const Direction direction : {Direction::activation, Direction::gradient})
      put(boundary, direction, rungs[place(direction)]);
  }
}

void AutomaticCodecs::apply(const CodecChoice& choice) {
  if (applied_ == choice.step) return;
  applied_ = choice.step;
  auto& boundaries = executor_.boundaries();
  const auto& ladder = asked_.automatic.ladder;
  for (const auto& [name, activations, gradients] : choice.boundaries) {
    const auto boundary = std::ranges::find(boundaries, name, &BoundaryEndpoints::name);
    if (boundary == boundaries.end()) {
      throw InputError("codecs of boundary {} were chosen, which this training does not have", name);
    }
    for (const Direction direction : {Direction::activation, Direction::gradient}) {
      if (!is_chosen(name, direction)) continue;
      const std::string& codec = (direction == Direction::activation ? activations : gradients).codec;
      const auto rung = std::ranges::find(ladder, codec);
      if (rung == ladder.end()) {
        throw InputError("compression.auto.ladder: expected one with \"{}\", which was chosen", codec);
      }
      put(*boundary, direction, static_cast<size_t>(rung - ladder.begin()));
    }
  }
}

const CodecChoice& choice_of_last_step(const TrainingState& state) {
  const auto& choices = state.choices;
  const auto before = std::ranges::find_if(choices.rbegin(), choices.rend(),
                                           [&](const CodecChoice& choice) { return choice.step < state.step; });
  return before == choices.rend() ? choices.front() : *before;
}

std::string describe(const CodecChoice& choice) {
  std::string text = "codecs";
  for (const auto& [name, activations, gradients] : choice.boundaries) {
    text += fmt::format("{} {} {} forward, {} backward", text == "codecs" ? ":" : ";", name, activations.codec,
                        gradients.codec);
  }
  return text;
}

CompressionOptions with_choice(CompressionOptions options, const CodecChoice& choice) {
  for (const auto& [name, activations, gradients] : choice.boundaries) {
    const auto [own_activations, own_gradients] = options.at(name);
    auto own = std::ranges::find(options.boundaries, name, &OwnBoundaryOptions::name);
    if (own == options.boundaries.end()) own = options.boundaries.insert(own, {name, {}, {}});
    if (own_activations.codec == kAutoCodec) own->activations.codec = activations.codec;
    if (own_gradients.codec == kAutoCodec) own->gradients.codec = gradients.codec;
  }
  return with_strongest_codecs(std::move(options));
}

}  // namespace strait
