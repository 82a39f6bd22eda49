#pragma once

#include <optional>

#include "strait/models/kinds.h"

namespace strait {

/// The key `init`: a file that has the weights.
SettingKey init_key();

/// The key `recompute`: blocks keep their input only.
SettingKey recompute_key();

/// About `heads`, which divides `width`.
std::optional<SettingComplaint> heads_complaint(const Settings& settings);

/// About `context`: a sample has at most so many tokens.
std::optional<SettingComplaint> context_complaint(const Settings& settings, const SampleForm& samples);

}  // namespace strait
