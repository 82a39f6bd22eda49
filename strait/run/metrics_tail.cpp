#include "strait/run/metrics_tail.h"

#include <fstream>
#include <string>

#include "strait/base/error.h"
#include "strait/run/metrics_json.h"

namespace strait {
namespace {

void add_epoch(const std::string& line, std::vector<EpochProgress>& epochs) {
  try {
    const EpochMetrics epoch = parse_epoch(line, "");
    epochs.push_back({.done = epoch.epoch + 1, .train_loss = epoch.train.loss, .test = epoch.test});
  } catch (const InputError&) {
    // Progress is for people to watch; strait report complains about a file like this.
  }
}

}  // namespace

MetricsTail::MetricsTail(std::filesystem::path file) : file_(std::move(file)), seen_(size()) {}

std::uintmax_t MetricsTail::size() const {
  std::error_code error;
  const auto size = std::filesystem::file_size(file_, error);
  return error ? 0 : size;
}

std::vector<EpochProgress> MetricsTail::read_new() {
  const auto size_now = size();
  if (size_now < seen_) seen_ = size_now;
  std::vector<EpochProgress> epochs;
  if (size_now == seen_) return epochs;
  std::ifstream in(file_, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(seen_));
  for (std::string line; std::getline(in, line) && !in.eof();) {  // a line without its end is not whole yet
    seen_ += line.size() + 1;
    add_epoch(line, epochs);
  }
  return epochs;
}

}  // namespace strait
