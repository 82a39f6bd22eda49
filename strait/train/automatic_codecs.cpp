#include "strait/train/automatic_codecs.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/base/multiples.h"
#include "strait/train/gradient_trial.h"

namespace strait {
namespace {

using nlohmann::json;

constexpr int64_t kFirstBatches = 4;        // before the first choice: the first of them warms up
constexpr uint64_t kAgain = 2;              // times the steps before a choice are those before the next
constexpr uint64_t kCosinesHold = 4;        // until a training has made so many times as many steps
constexpr uint64_t kLowCosinesHold = 16;    // likewise, one so low that its codec is far from being taken
constexpr double kLow = 0.7;                // that much
constexpr double kSurest = 0.99;            // of a measured cosine: what is lost beyond it cannot be seen
constexpr double kEarlierProducts = 0.7;    // what they count for beside those of now
constexpr int64_t kRowsToBegin = 4;         // whose messages say what to begin with
constexpr double kSmallError = 0.2;         // that counts as none in the early steps
constexpr uint64_t kEarlySteps = 32;        // before cosines are measured, as they still rise and fall
constexpr int64_t kTrialBatches = 4;        // whose gradients are compared
constexpr double kErrorOfReference = 0.02;  // of messages with which gradients are as good as uncompressed

/// The strongest codec whose error is at most that, or else the one with the least.
size_t strongest_within(const std::vector<double>& errors, double most) {
  size_t best = 0;
  for (size_t rung = 1; rung < errors.size(); ++rung) {
    if (errors[rung] <= most || errors[rung] < std::min(errors[best], errors[0])) best = rung;
  }
  return best;
}

LadderCosines that_hold(const MeasuredCosines& measured, uint64_t step) {
  LadderCosines holding;
  for (const Direction direction : {Direction::activation, Direction::gradient}) {
    for (const auto& codec : measured.of(direction)) {
      auto& cosine = holding.of(direction).emplace_back();
      if (!codec) continue;
      const uint64_t times = codec->cosine < kLow ? kLowCosinesHold : kCosinesHold;
      if (step < times * codec->step) cosine = codec->cosine;
    }
  }
  return holding;
}

CodecCosine measured_now(uint64_t step, const GradientProducts& now, const std::optional<CodecCosine>& before) {
  const GradientProducts all = before ? sum_of(now, before->products, kEarlierProducts) : now;
  return {step, std::min(cosine_of(all), kSurest), all};
}

bool has_any(const MeasuredCosines& measured) {
  const auto is_known = [](const auto& codec) { return codec.has_value(); };
  return std::ranges::any_of(measured.activations, is_known) ||
         std::ranges::any_of(measured.gradients, is_known);
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
                                 ChooseCodecs choose)
    : executor_(executor),
      group_(placement.group()),
      asked_(std::move(asked)),
      choose_(std::move(choose)),
      side_pass_(placement.own()) {
  if (!choose_) {
    throw InputError("compression: codec \"{}\" expects TrainerOptions::choose_codecs, found none", kAutoCodec);
  }
  for (const auto& codec : asked_.automatic.ladder) ladder_.push_back(make_link(codec));
  for (size_t stage = 0; stage < placement.stages().size(); ++stage) {
    if (!placement.is_here(stage)) continue;
    const size_t parameters = placement.model().part(placement.stages()[stage]).parameters().size();
    stages_.insert(stages_.end(), parameters, static_cast<int>(stage));
  }
  STRAIT_CHECK(stages_.size() == side_pass_.parameters().size(), "{} parameters, {} of stages",
               side_pass_.parameters().size(), stages_.size());
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
  keep_messages();
  std::vector<at::Tensor> gradients;
  const StepInput part = rows_of(batch, 0, std::min(batch.rows, kRowsToBegin));
  side_pass_.run(gradients, [&] { executor_.trial(part); });
  const LadderErrors errors = greatest_errors(try_links());
  const double budget = asked_.automatic.budget;
  const double most = budget > 0 ? budget : kSmallError;
  state.choices.back() =
      provisional({strongest_within(errors[0], most), strongest_within(errors[1], most)}, state.step);
  starting_ = false;
  applied_.reset();
  apply(state.choices.back());
}

void AutomaticCodecs::before_batch(const TrainingState& state, int64_t steps, int64_t batches, int64_t epochs) {
  const auto& choices = state.choices;
  const int64_t left = batches - state.batches - 1;
  const int64_t done = state.epoch * batches + state.batches + 1;
  ahead_ = std::min(static_cast<int64_t>(kCosinesHold - 1) * done, epochs * batches - done);
  if (state.batches == 0) warm_up_.clear();  // times begin anew with the epoch
  if (choices.back().step <= state.step) apply(choices.back());
  const auto ending = static_cast<uint64_t>(steps);
  const auto every = static_cast<uint64_t>(asked_.automatic.every_steps);
  const bool is_first = is_provisional(state) && (state.batches + 1 >= kFirstBatches || left == 0);
  const bool is_another = left == 0 || passes_multiple(every, state.step + ending, ending) ||
                          (!is_provisional(state) && state.step + ending >= kAgain * choices.back().step);
  const bool is_last = done == epochs * batches;
  due_ = steps > 0 && (is_first || (is_another && !is_last));
  if (due_) keep_messages();
}

void AutomaticCodecs::keep_messages() {
  for (auto& boundary : executor_.boundaries()) {
    for (auto* channel : {&boundary.activations, &boundary.gradients}) {
      if (channel->sender) channel->sender->keep_next();
    }
  }
}

std::vector<std::shared_ptr<const Link>> AutomaticCodecs::links_to_try(const std::string& boundary,
                                                                       const ChannelEndpoints& channel,
                                                                       Direction direction) const {
  if (channel.link->carries_integers()) return {channel.link};
  if (is_chosen(boundary, direction)) return ladder_;
  return {make_link(channel.link->shared_codec())};  // without feedback, whose state is its own
}

/// On the messages that were kept.
std::vector<TriedChannel> AutomaticCodecs::try_links() {
  std::vector<TriedChannel> channels;
  for (auto& boundary : executor_.boundaries()) {
    for (const Direction direction : {Direction::activation, Direction::gradient}) {
      ChannelEndpoints& channel = boundary.channel(direction);
      if (!channel.sender) continue;
      const auto message = channel.sender->take_kept();
      if (!message) continue;  // integers do not come back
      TriedChannel& tried =
          channels.emplace_back(TriedChannel{boundary.name, direction, message->tensor.size(0), {}});
      tried.trials = try_all(*message, links_to_try(boundary.name, channel, direction));
    }
  }
  return channels;
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

MeasuredCosines AutomaticCodecs::measured_before(const TrainingState& state) const {
  const auto& last = state.choices.back().cosines;
  if (last && last->activations.size() == ladder_.size() && last->gradients.size() == ladder_.size())
    return *last;
  const std::vector<std::optional<CodecCosine>> unknown(ladder_.size());
  return {unknown, unknown};
}

/// Codecs up to the reference turn nothing, and the others of the early steps, where none is measured, all.
ChoiceFacts AutomaticCodecs::facts_of(const TrainingState& state, LadderCosines holding) {
  const bool is_early = state.step < kEarlySteps;
  ChoiceFacts facts{.channels = try_links(),
                    .stages = difference(state.stages, warm_up_),
                    .since_last = since_last_.seconds(),
                    .cosines = std::move(holding),
                    .trial_terms = {.batches = kTrialBatches, .batches_ahead = ahead_}};
  const auto [activations, gradients] = greatest_errors(facts.channels);
  const double most = is_early ? kSmallError : kErrorOfReference;
  facts.trial_terms.reference =
      std::min(strongest_within(activations, most), strongest_within(gradients, most));
  for (const Direction direction : {Direction::activation, Direction::gradient}) {
    auto& cosines = facts.cosines.of(direction);
    for (size_t rung = 0; rung < cosines.size(); ++rung) {
      if (cosines[rung]) continue;
      if (rung <= facts.trial_terms.reference)
        cosines[rung] = 1;
      else if (is_early)
        cosines[rung] = 0;
    }
  }
  return facts;
}

void AutomaticCodecs::choose(TrainingState& state,
                             const std::function<std::vector<StepInput>(int64_t most)>& last_batches) {
  MeasuredCosines measured = measured_before(state);
  const ChoiceFacts mine = facts_of(state, that_hold(measured, state.step));
  std::optional<GradientTrial> trial;
  int64_t batches = 0;  // that gradients are of
  int64_t trial_batches = 0;
  const auto run_with = [&](const LadderRungs& rungs, const auto& pass) {
    put_everywhere(rungs);
    trial_batches += batches;
    return pass();
  };
  const auto cosine = [&](Direction direction, size_t rung) {
    LadderRungs rungs = {mine.trial_terms.reference, mine.trial_terms.reference};
    if (!trial) {
      const auto samples = last_batches(kTrialBatches);
      batches = static_cast<int64_t>(samples.size() == 1 ? 1 : samples.size() / 2 * 2);
      trial.emplace(side_pass_, stages_, executor_, group_, halves_of(samples));
      run_with(rungs, [&] { trial->set_reference(); });
    }
    rungs[place(direction)] = rung;
    auto& known = measured.of(direction)[rung];
    const auto products = run_with(rungs, [&] { return trial->products(); });
    known = measured_now(state.step, products, known);
    return known->cosine;
  };
  CodecChoice choice = choose_(mine, group_, cosine);
  if (trial) {
    applied_.reset();
    apply(choice_of_last_step(state));
  }
  choice.step = state.step;
  choice.trial_batches = trial_batches;
  if (has_any(measured)) choice.cosines = std::move(measured);
  state.choices.push_back(std::move(choice));
  is_warming_up_ = false;
  since_last_ = Stopwatch();
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
