#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strait/base/kinds.h"
#include "strait/base/sample_form.h"
#include "strait/data/dataset.h"

namespace strait {

/// A kind of data set, and what is known of it before it is loaded.
struct DataKind {
  std::string name;                   ///< in data.kind
  std::string task;                   ///< what networks learn from it, by its name in strait/train/task.h
  bool is_text = false;               ///< samples are blocks of tokens; the settings have `block`, their number
  bool is_in_files = true;            ///< below DataOptions::root; else it is drawn
  int64_t batch_size = 100;           ///< where nothing sets it
  std::vector<SettingKey> keys = {};  ///< besides those of every kind

  /// Of the samples that the options ask for; of text by the options alone, otherwise perhaps by files. Throws
  /// InputError.
  SampleForm (*form)(const DataOptions&) = nullptr;

  /// The task, where files decide and `task` is empty. Throws InputError.
  std::string (*task_of_files)(const DataOptions&) = nullptr;

  /// See load_data().
  DataSplits (*load)(const DataOptions&) = nullptr;
};

/// The kinds of data_list.def, in its order.
const std::vector<DataKind>& data_kinds();

/// The kind of that name. Throws InputError that lists the names.
const DataKind& data_kind(std::string_view name);

/// Whether samples are blocks of tokens.
inline bool is_text(const DataOptions& options) { return data_kind(options.kind).is_text; }

}  // namespace strait
