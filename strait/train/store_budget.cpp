#include "strait/train/store_budget.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/links/sample_store.h"

namespace strait {
namespace {

std::string size_text(uint64_t bytes) {
  const auto amount = static_cast<double>(bytes);
  return bytes >= 1000000000 ? fmt::format("{:.1f} GB", amount / 1e9) : fmt::format("{:.1f} MB", amount / 1e6);
}

/// What the kernel says could be taken without swapping, and no more than a container's limit.
uint64_t free_memory() {
  uint64_t free = std::numeric_limits<uint64_t>::max();
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    if (word == "MemAvailable:" && info >> free) free *= 1024;
  }
  uint64_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) free = std::min(free, limit);
  return free;
}

}  // namespace

StoreBudget::StoreBudget(const CompressionOptions& options, std::vector<std::string> boundaries,
                         const std::vector<std::vector<int64_t>>& sample_shapes, int64_t samples)
    : options_(options.store), samples_(static_cast<uint64_t>(samples)) {
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (!keeps_samples(options, std::span(&boundaries[i], 1))) continue;
    const auto& shape = sample_shapes[i];
    elements_.push_back(std::accumulate(shape.begin(), shape.end(), size_t{1},
                                        [](size_t n, int64_t d) { return n * static_cast<size_t>(d); }));
    boundaries_.push_back(std::move(boundaries[i]));
  }
}

uint64_t StoreBudget::bytes_in(const std::string& format) const {
  StoreOptions options = options_;
  options.format = format;
  uint64_t sum = 0;
  for (const size_t elements : elements_) sum += samples_ * store_row_bytes(options, elements);
  return sum;
}

uint64_t StoreBudget::bytes() const { return bytes_in(options_.format); }

std::string StoreBudget::describe() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < elements_.size(); ++i) {
    parts.push_back(
        fmt::format("{} {}", boundaries_[i], size_text(samples_ * store_row_bytes(options_, elements_[i]))));
  }
  return fmt::format("aq-sgd keeps {} for {} samples in {} in {} ({})", size_text(bytes()), samples_,
                     options_.format, options_.place == "file" ? "a file" : "memory", list_of(parts));
}

void StoreBudget::check_fits(uint64_t free_bytes) const {
  if (bytes() <= free_bytes) return;
  std::vector<std::string> advice;
  if (options_.place == "memory") advice.emplace_back("compression.store.place = \"file\"");
  for (const char* format : {"bf16", "quant:8"}) {
    if (bytes_in(format) < bytes() && bytes_in(format) <= free_bytes) {
      advice.push_back(
          fmt::format("compression.store.format = \"{}\" ({})", format, size_text(bytes_in(format))));
    }
  }
  if (options_.place == "file") advice.emplace_back("another compression.store.folder");
  advice.emplace_back("a smaller data.train_limit");
  throw InputError("{}, but {} are free; choose one of: {}", describe(), size_text(free_bytes),
                   list_of(advice));
}

uint64_t StoreBudget::free_bytes() const {
  if (options_.place == "memory") return free_memory();
  return std::filesystem::space(options_.folder.empty() ? std::filesystem::temp_directory_path()
                                                        : std::filesystem::path(options_.folder))
      .available;
}

}  // namespace strait
