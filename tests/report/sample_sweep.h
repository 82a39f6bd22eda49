#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace strait::test {

/// A run's metrics.jsonl line with made-up scores and one boundary, newline included.
std::string epoch_line(int epoch, double train_loss, double off, double on);

/// The files of a run: status.json (updated at 1.8e9 s + seed hours), config.toml and the lines.
void write_run(const std::filesystem::path& folder, const std::string& name, uint64_t seed,
               const std::string& status, const std::string& lines);

/// An entry of sweep.json whose folder is VARIANT-seedN, as write_run() is given it.
std::string sweep_entry(const std::string& variant, uint64_t seed, const std::string& status,
                        const std::string& paper = "");

/// A sweep of 6 variants x 3 seeds x 20 epochs with plausible curves, three boundaries and diagnostics;
/// of the strongest variant's seeds one diverged and one is running.
void write_sample_sweep(const std::filesystem::path& folder);

}  // namespace strait::test
