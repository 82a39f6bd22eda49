#pragma once

#include <optional>

#include "strait/models/kinds.h"

namespace strait {

/// The key `init`: a file that has the weights.
SettingKey init_key();

/// The key `recompute`: blocks keep their input only.
SettingKey recompute_key();

/// What does not go together in a network of attention over tokens: `heads` divides `width`, and a sample has
/// at most `context` tokens.
std::optional<SettingComplaint> decoder_complaint(const Settings& settings, const SampleForm& samples);

}  // namespace strait
