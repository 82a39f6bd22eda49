#include "strait/train/automatic_codecs.h"

#include <algorithm>
#include <utility>

#include "strait/base/error.h"
#include "strait/base/multiples.h"

namespace strait {
namespace {

constexpr int64_t kFirstBatches = 4;  // before the first choice: the first of them warms up

/// Those that are chosen where nothing is known yet.
CodecChoice strongest(const CompressionOptions& asked, const std::vector<BoundaryEndpoints>& boundaries,
                      uint64_t step) {
  const CompressionOptions options = with_strongest_codecs(asked);
  CodecChoice choice{.step = step, .boundaries = {}};
  for (const auto& boundary : boundaries) {
    if (boundary.activations.link->carries_integers()) continue;
    const auto [activations, gradients] = options.at(boundary.name);
    choice.boundaries.push_back({boundary.name, {activations.codec}, {gradients.codec}});
  }
  return choice;
}

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

AutomaticCodecs::AutomaticCodecs(Executor& executor, Group& group, CompressionOptions asked,
                                 ChooseCodecs choose)
    : executor_(executor), group_(group), asked_(std::move(asked)), choose_(std::move(choose)) {
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
  if (state.choices.empty()) state.choices.push_back(strongest(asked_, executor_.boundaries(), state.step));
  applied_.reset();
  apply(choice_of_last_step(state));
}

void AutomaticCodecs::before_batch(const TrainingState& state, int64_t steps, int64_t left,
                                   bool is_last_epoch) {
  if (state.choices.back().step <= state.step) apply(state.choices.back());
  const auto ending = static_cast<uint64_t>(steps);
  const auto every = static_cast<uint64_t>(asked_.automatic.every_steps);
  const bool is_first = is_provisional(state) && (state.batches + 1 >= kFirstBatches || left == 0);
  const bool is_another = left == 0 || passes_multiple(every, state.step + ending, ending);
  const bool is_last = left == 0 && is_last_epoch;
  due_ = steps > 0 && (is_first || (is_another && !is_last));
  if (!due_) return;
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

void AutomaticCodecs::choose(TrainingState& state) {
  ChoiceFacts mine{
      .channels = {}, .stages = difference(state.stages, warm_up_), .since_last = since_last_.seconds()};
  for (auto& boundary : executor_.boundaries()) {
    for (const Direction direction : {Direction::activation, Direction::gradient}) {
      ChannelEndpoints& channel = boundary.channel(direction);
      if (!channel.sender) continue;
      const auto message = channel.sender->take_kept();
      if (!message) continue;  // integers do not come back
      TriedChannel& tried =
          mine.channels.emplace_back(TriedChannel{boundary.name, direction, message->tensor.size(0), {}});
      for (const auto& link : links_to_try(boundary.name, channel, direction)) {
        tried.trials.push_back(try_link(*message, link));
      }
    }
  }
  CodecChoice choice = choose_(mine, group_);
  choice.step = state.step;
  state.choices.push_back(std::move(choice));
  warm_up_.clear();
  since_last_ = Stopwatch();
  due_ = false;
}

std::vector<CodecChoice> AutomaticCodecs::of_epoch(const TrainingState& state) {
  std::vector<CodecChoice> held = state.choices;
  std::erase_if(held, [&](const CodecChoice& choice) { return choice.step >= state.step; });
  return held;
}

void AutomaticCodecs::apply(const CodecChoice& choice) {
  if (applied_ == choice.step) return;
  applied_ = choice.step;
  auto& boundaries = executor_.boundaries();
  for (const auto& [name, activations, gradients] : choice.boundaries) {
    const auto boundary = std::ranges::find(boundaries, name, &BoundaryEndpoints::name);
    if (boundary == boundaries.end()) {
      throw InputError("codecs of boundary {} were chosen, which this training does not have", name);
    }
    const auto put = [&](ChannelEndpoints& channel, Direction direction, const std::string& codec) {
      if (!is_chosen(boundary->name, direction)) return;
      const auto rung = std::ranges::find(asked_.automatic.ladder, codec);
      if (rung == asked_.automatic.ladder.end()) {
        throw InputError("compression.auto.ladder: expected one with \"{}\", which was chosen", codec);
      }
      const auto& link = ladder_.at(static_cast<size_t>(rung - asked_.automatic.ladder.begin()));
      if (channel.link != link) channel.set_link(link);
    };
    put(boundary->activations, Direction::activation, activations.codec);
    put(boundary->gradients, Direction::gradient, gradients.codec);
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
