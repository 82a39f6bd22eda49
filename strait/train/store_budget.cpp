#include "strait/train/store_budget.h"

#include <filesystem>
#include <numeric>

#include "strait/base/error.h"
#include "strait/base/host.h"
#include "strait/base/text.h"
#include "strait/base/units.h"
#include "strait/boundary/boundary.h"
#include "strait/links/sample_store.h"

namespace strait {
StoreBudget::StoreBudget(const CompressionOptions& options, const std::vector<std::string>& boundaries,
                         const std::vector<std::vector<int64_t>>& sample_shapes, int64_t samples)
    : options_(options), samples_(static_cast<uint64_t>(samples)) {
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const auto& shape = sample_shapes[i];
    const size_t elements = std::accumulate(shape.begin(), shape.end(), size_t{1},
                                            [](size_t n, int64_t d) { return n * static_cast<size_t>(d); });
    const BoundaryLinks links = links_of(options, boundaries[i]);
    for (const Direction direction : {Direction::activation, Direction::gradient}) {
      const Link& link = direction == Direction::activation ? *links.activations : *links.gradients;
      if (link.store() != nullptr) stores_.push_back({boundaries[i], direction, elements});
    }
  }
}

StoreOptions StoreBudget::options_of(const Store& store) const {
  const BoundaryLinks links = links_of(options_, store.boundary);
  return *(store.direction == Direction::activation ? links.activations : links.gradients)->store();
}

uint64_t StoreBudget::bytes_of(const Store& store) const {
  return samples_ * store_row_bytes(options_of(store), store.elements);
}

uint64_t StoreBudget::bytes() const {
  uint64_t sum = 0;
  for (const Store& store : stores_) sum += bytes_of(store);
  return sum;
}

uint64_t StoreBudget::bytes_in(const std::string& format) const {
  StoreBudget other = *this;
  other.options_.store.format = format;
  return other.bytes();
}

std::string StoreBudget::describe() const {
  std::vector<std::string> parts;
  for (const Store& store : stores_) {
    parts.push_back(fmt::format("{}{} {} in {}", store.boundary,
                                store.direction == Direction::activation ? "" : " gradients",
                                size_text(bytes_of(store)), options_of(store).format));
  }
  return fmt::format("feedback keeps {} for {} samples, {} bytes each, in {} ({})", size_text(bytes()),
                     samples_, samples_ == 0 ? 0 : bytes() / samples_,
                     options_.store.is_in_file() ? "a file" : "memory", list_of(parts));
}

void StoreBudget::check_fits(uint64_t free_bytes, uint64_t others) const {
  if (bytes() + others <= free_bytes) return;
  const auto fits = [&](uint64_t wanted) {  // and the others' in the same format
    const double share = static_cast<double>(wanted) / static_cast<double>(bytes());
    return wanted < bytes() && share * static_cast<double>(bytes() + others) <= static_cast<double>(free_bytes);
  };
  std::vector<std::string> advice;
  if (!options_.store.is_in_file()) advice.emplace_back("compression.store.place = \"file\"");
  for (const std::string& format : store_formats()) {
    if (fits(bytes_in(format))) {
      advice.push_back(
          fmt::format("compression.store.format = \"{}\" ({})", format, size_text(bytes_in(format))));
    }
  }
  if (options_.store.is_in_file()) advice.emplace_back("another compression.store.folder");
  advice.emplace_back("a smaller data.train_limit");
  const std::string of_others =
      others == 0 ? "" : fmt::format(", and {} in other processes on this machine", size_text(others));
  throw InputError("{}{}, but {} are free; choose one of: {}", describe(), of_others, size_text(free_bytes),
                   list_of(advice));
}

uint64_t StoreBudget::free_bytes() const {
  if (!options_.store.is_in_file()) return free_memory();
  return std::filesystem::space(options_.store.folder.empty() ? std::filesystem::temp_directory_path()
                                                              : std::filesystem::path(options_.store.folder))
      .available;
}

}  // namespace strait
