#pragma once

#include <filesystem>
#include <string_view>

#include "strait/data/dataset.h"

namespace strait {

/// The folder of WikiText-2's raw files under data.root.
inline constexpr std::string_view kWikitextFolder = "wikitext-2-raw";

/// Where the tokenizer's files lie: the setting `tokenizer`, or gpt2/ under `options.root`. Throws InputError
/// where neither is there.
std::filesystem::path tokenizer_folder(const DataOptions& options);

}  // namespace strait
