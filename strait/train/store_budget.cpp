#include "strait/train/store_budget.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/boundary/boundary.h"
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
    : options_(options), samples_(static_cast<uint64_t>(samples)) {
  for (size_t i = 0; i < boundaries.size(); ++i) {
    if (links_of(options, boundaries[i]).activations->store() == nullptr) continue;
    const auto& shape = sample_shapes[i];
    elements_.push_back(std::accumulate(shape.begin(), shape.end(), size_t{1},
                                        [](size_t n, int64_t d) { return n * static_cast<size_t>(d); }));
    boundaries_.push_back(std::move(boundaries[i]));
  }
}

StoreOptions StoreBudget::store_of(size_t boundary) const {
  return *links_of(options_, boundaries_[boundary]).activations->store();
}

uint64_t StoreBudget::bytes_of(size_t boundary) const {
  return samples_ * store_row_bytes(store_of(boundary), elements_[boundary]);
}

uint64_t StoreBudget::bytes() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < boundaries_.size(); ++i) sum += bytes_of(i);
  return sum;
}

uint64_t StoreBudget::bytes_in(const std::string& format) const {
  StoreBudget other = *this;
  other.options_.store.format = format;
  return other.bytes();
}

std::string StoreBudget::describe() const {
  std::vector<std::string> parts;
  for (size_t i = 0; i < boundaries_.size(); ++i) {
    parts.push_back(fmt::format("{} {} in {}", boundaries_[i], size_text(bytes_of(i)), store_of(i).format));
  }
  return fmt::format("feedback keeps {} for {} samples, {} bytes each, in {} ({})", size_text(bytes()),
                     samples_, samples_ == 0 ? 0 : bytes() / samples_,
                     options_.store.place == "file" ? "a file" : "memory", list_of(parts));
}

void StoreBudget::check_fits(uint64_t free_bytes) const {
  if (bytes() <= free_bytes) return;
  std::vector<std::string> advice;
  if (options_.store.place == "memory") advice.emplace_back("compression.store.place = \"file\"");
  for (const std::string& format : store_formats()) {
    if (bytes_in(format) < bytes() && bytes_in(format) <= free_bytes) {
      advice.push_back(
          fmt::format("compression.store.format = \"{}\" ({})", format, size_text(bytes_in(format))));
    }
  }
  if (options_.store.place == "file") advice.emplace_back("another compression.store.folder");
  advice.emplace_back("a smaller data.train_limit");
  throw InputError("{}, but {} are free; choose one of: {}", describe(), size_text(free_bytes),
                   list_of(advice));
}

uint64_t StoreBudget::free_bytes() const {
  if (options_.store.place == "memory") return free_memory();
  return std::filesystem::space(options_.store.folder.empty() ? std::filesystem::temp_directory_path()
                                                              : std::filesystem::path(options_.store.folder))
      .available;
}

}  // namespace strait
