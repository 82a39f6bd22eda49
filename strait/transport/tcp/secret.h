#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strait {

/// The secret of a run, which lets its ranks in: the variable that has it, and the one that names a file with
/// it.
inline constexpr const char* kSecretVariable = "STRAIT_SECRET";
inline constexpr const char* kSecretFileVariable = "STRAIT_SECRET_FILE";

/// Fewest characters of a secret.
inline constexpr size_t kMinSecret = 16;

/// The secret that the environment gives to this process, if it does. Throws InputError for one that is too
/// short, and for a file that cannot be read or that others can read.
std::optional<std::string> secret_of_process();

/// A new secret that nobody can guess: 64 hexadecimal digits.
std::string random_secret();

/// 64 hexadecimal digits that stand for a text and do not tell it (SHA-256).
std::string digest(std::string_view text);

}  // namespace strait
