#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "strait/run/metrics.h"

namespace strait::cli {

/// Writes lines to standard output, printable() ones: names in them may come from anybody's files. A reader
/// that has gone (`strait ... | head`, a closed terminal) is no error; anything else that keeps the text from
/// being written throws Error.
void print(std::string_view text);

/// The same of bytes that are the result themselves; a terminal gets them printable() as well.
void print_bytes(std::string_view bytes);

/// Writes to standard error, where nobody needs to read: on a terminal that has gone it does nothing.
void show(std::string_view text);

/// Writes what print() still holds, under the same rules.
void flush_output();

/// Columns of the terminal on standard error, or what is usual where that cannot be asked.
size_t terminal_width();

/// A span of time as `0:07` or `1:02:03`.
std::string clock_time(double seconds);

/// A metric's value as a table has it: `93.10`, `21.01`, a large one as `4.85e+08`.
std::string number_text(double value);

/// What a network is judged by: `93.10%`, `perplexity 21.01`, where there is no metric `loss 0.1234`.
std::string score_text(const Score& score);

/// `off 93.10%  on (plain) 92.95%` and, in the same way, the other modes that were scored.
std::string scores_text(const Evaluation& test);

/// The same of an epoch, behind `  test `; empty where it was not scored.
std::string test_text(const std::optional<Evaluation>& test);

}  // namespace strait::cli
