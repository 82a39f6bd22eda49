#include "strait/pipeline/plan.h"

#include <algorithm>
#include <array>
#include <optional>

#include "strait/base/error.h"
#include "strait/base/text.h"

namespace strait {
namespace {

// In the order of Op.
constexpr std::array<std::string_view, kOpCount> kOpNames = {"F", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B"};

constexpr std::string_view kDigits = "0123456789";

std::optional<Op> op_of(std::string_view name) {
  const auto* const found = std::ranges::find(kOpNames, name);
  if (found == kOpNames.end()) return std::nullopt;
  return static_cast<Op>(found - kOpNames.begin());
}

Action parse_action(std::string_view token, size_t line) {
  const size_t name_begin = std::min(token.find_first_not_of(kDigits), token.size());
  const size_t name_end = token.find_last_not_of(kDigits) + 1;
  const bool three_parts = name_begin > 0 && name_begin < name_end && name_end < token.size();
  const auto op = three_parts ? op_of(token.substr(name_begin, name_end - name_begin)) : std::nullopt;
  if (!op) {
    throw InputError("plan line {}: \"{}\" is not an action such as 0F1 or 1RECV_B0", line, token);
  }
  const auto number = [&](std::string_view digits, std::string_view what, int limit) {
    return static_cast<int>(
        parse_integer(digits, fmt::format("plan line {}: \"{}\": the {}", line, token, what), 0, limit - 1));
  };
  return {*op, number(token.substr(0, name_begin), "stage", kMaxStages),
          number(token.substr(name_end), "micro-batch", kMaxMicroBatches)};
}

/// Enters that the stage lives on this rank, which is line `rank + 1`.
void place_stage(Plan& plan, const Action& action, int rank) {
  const auto stage = static_cast<size_t>(action.stage);
  if (stage >= plan.rank_of_stage.size()) plan.rank_of_stage.resize(stage + 1, -1);
  int& home = plan.rank_of_stage[stage];
  if (home == -1) home = rank;
  if (home != rank) {
    throw InputError("plan line {}: \"{}\": stage {} is already on line {}", rank + 1, to_text(action),
                     action.stage, home + 1);
  }
}

}  // namespace

bool is_send(Op op) { return op == Op::send_activation || op == Op::send_gradient; }

bool is_receive(Op op) { return op == Op::recv_activation || op == Op::recv_gradient; }

Direction direction_of(Op op) {
  STRAIT_CHECK(is_send(op) || is_receive(op), "a computation has no direction");
  return op == Op::send_activation || op == Op::recv_activation ? Direction::activation : Direction::gradient;
}

int boundary_of(const Action& action) {
  STRAIT_CHECK(is_send(action.op) || is_receive(action.op), "{} crosses no boundary", to_text(action));
  const bool downstream = action.op == Op::send_activation || action.op == Op::recv_gradient;
  return downstream ? action.stage : action.stage - 1;
}

std::string to_text(const Action& action) {
  return fmt::format("{}{}{}", action.stage, kOpNames[static_cast<size_t>(action.op)], action.micro_batch);
}

std::string to_text(const Plan& plan) {
  std::string text;
  for (const auto& actions : plan.ranks) {
    for (size_t i = 0; i < actions.size(); ++i) {
      if (i > 0) text += ' ';
      text += to_text(actions[i]);
    }
    text += '\n';
  }
  return text;
}

Plan parse_plan(std::string_view text) {
  Plan plan;
  if (text.ends_with('\n')) text.remove_suffix(1);
  for (const auto& line : split(text, '\n')) {
    const int rank = static_cast<int>(plan.ranks.size());
    auto& actions = plan.ranks.emplace_back();
    for (const auto& token : split(line, ' ')) {
      if (token.empty()) continue;
      actions.push_back(parse_action(token, plan.ranks.size()));
      place_stage(plan, actions.back(), rank);
      plan.micro_batches = std::max(plan.micro_batches, actions.back().micro_batch + 1);
    }
  }
  plan.stages = static_cast<int>(plan.rank_of_stage.size());
  if (plan.stages == 0) throw InputError("plan line 1: \"\": the plan has no action");
  const auto missing = std::ranges::find(plan.rank_of_stage, -1);
  if (missing != plan.rank_of_stage.end()) {
    throw InputError("plan: no line has an action of stage {}, but there is a stage {}",
                     missing - plan.rank_of_stage.begin(), plan.stages - 1);
  }
  return plan;
}

}  // namespace strait
