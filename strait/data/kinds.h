#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strait/data/dataset.h"

namespace strait {

/// What a model must know of the samples that it is for.
struct SampleForm {
  std::vector<int64_t> shape;  ///< of one input, without the batch dimension
  int64_t classes = 0;         ///< what a prediction chooses among; 0: tokens, DataSplits::vocab of them
};

/// A kind of data set, and what is known of it before it is loaded.
struct DataKind {
  std::string name;
  std::string task;          ///< what networks learn from it, by its name in strait/train/task.h
  bool is_text = false;      ///< samples are blocks of tokens, and the options of text are its own
  bool is_in_files = true;   ///< below DataOptions::root; else it is drawn
  int64_t batch_size = 100;  ///< where nothing sets it
  SampleForm (*form)(const DataOptions&);
  DataSplits (*load)(const DataOptions&);
};

/// The list of them, one entry each.
const std::vector<DataKind>& data_kinds();

std::vector<std::string> data_kind_names();

/// The kind of that name. Throws InputError that lists the names.
const DataKind& data_kind(std::string_view name);

/// Whether samples are blocks of tokens.
inline bool is_text(const DataOptions& options) { return data_kind(options.kind).is_text; }

}  // namespace strait
