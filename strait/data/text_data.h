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

/// The kinds "wikitext2" and "text": blocks of as many tokens as the setting `block` says (text_source.h).
///
/// wikitext2: wiki.train.raw and, as test set, wiki.valid.raw of wikitext-2-raw/ under `options.root`, line by
/// line. text: `train_file` and `test_file`, each encoded as a whole and cut into blocks; the last tokens,
/// which fill no block, are dropped. `train_range` chooses from the training text alone, before it is encoded,
/// and the limits count blocks. Tokens are looked up in the cache that token_cache_folder() names, and left
/// there.
///
/// Throws InputError for a file that is missing or empty, one that gives no block, and limits beyond the
/// blocks.
DataSplits load_text(const DataOptions& options);

}  // namespace strait
