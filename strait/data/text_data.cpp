#include "strait/data/text_data.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/data/kinds.h"
#include "strait/data/limits.h"
#include "strait/data/token_blocks.h"
#include "strait/data/token_cache.h"

namespace strait {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTextAdvice =
    "data.root (or STRAIT_DATA) must name the folder that holds wikitext-2-raw/wiki.train.raw and "
    "wiki.valid.raw";
constexpr std::string_view kTokenizerAdvice =
    "data.tokenizer must name the folder of the tokenizer's files, or data.root (or STRAIT_DATA) the folder "
    "that holds gpt2/vocab.json and gpt2/merges.txt, which \"strait data get gpt2-tokenizer\" fetches";

fs::path wikitext_file(const DataOptions& options, const char* name) {
  if (options.root.empty()) throw InputError("data.root is not set: {}", kTextAdvice);
  auto path = fs::path(options.root) / kWikitextFolder / name;
  if (!is_there(path)) throw InputError("{}: no such file; {}", path.string(), kTextAdvice);
  return path;
}

fs::path text_file(const DataOptions& options, std::string_view key) {
  const auto& path = options.settings.text(key);
  if (path.empty()) throw InputError("data.{} is not set, expected the name of a text file", key);
  return path;
}

/// Turns texts into samples.
class TextReader {
 public:
  TextReader(const DataOptions& options, TextForm form)
      : form_(form),
        block_(options.settings.integer("block")),
        files_(read_tokenizer_files(tokenizer_folder(options))),
        tokenizer_(parse_tokenizer_files(files_)),
        cache_(token_cache_folder()) {}

  int64_t vocab() const { return tokenizer_.vocab_size(); }

  /// The first `limit` blocks of the range of the file; `key` is the limit's.
  std::shared_ptr<const Dataset> read(const fs::path& path, const std::vector<double>& range, int64_t limit,
                                      std::string_view key) const {
    const std::string text = read_whole(path);
    const EncodedText encoded = encode(range_of_text(text, range[0], range[1], form_));
    auto tokens = cut_into_blocks(encoded, block_);
    if (tokens.empty()) {
      throw InputError("{}: the range [{}, {}] of the text has {} tokens and not one block of data.block = {}",
                       path.string(), range[0], range[1], encoded.tokens.size(), block_);
    }
    const int64_t blocks = limited(key, limit, static_cast<int64_t>(tokens.size()) / block_);
    tokens.resize(static_cast<size_t>(blocks * block_));
    tokens.shrink_to_fit();
    return std::make_shared<TokenBlocks>(std::move(tokens), block_);
  }

 private:
  EncodedText encode(std::string_view text) const {
    const std::string key = token_key(files_, text, form_);
    if (auto known = cache_.find(key, vocab())) return std::move(*known);
    EncodedText encoded = encode_text(tokenizer_, text, form_);
    cache_.store(key, encoded);
    return encoded;
  }

  TextForm form_;
  int64_t block_;
  std::vector<NamedText> files_;
  Tokenizer tokenizer_;
  TokenCache cache_;
};

}  // namespace

fs::path tokenizer_folder(const DataOptions& options) {
  if (const auto& folder = options.settings.text("tokenizer"); !folder.empty()) return folder;
  if (options.root.empty()) throw InputError("data.tokenizer is not set: {}", kTokenizerAdvice);
  auto folder = fs::path(options.root) / "gpt2";
  if (!is_there(folder)) throw InputError("{}: no such folder; {}", folder.string(), kTokenizerAdvice);
  return folder;
}

namespace {

/// The kinds "wikitext2" and "text": blocks of as many tokens as the setting `block` says (text_source.h).
///
/// wikitext2: wiki.train.raw and, as test set, wiki.valid.raw of wikitext-2-raw/ under `options.root`, line by
/// line. text: `train_file` and `test_file`, each encoded as a whole, with special tokens where
/// `special_tokens` says so, and cut into blocks; the last tokens, which fill no block, are dropped.
/// `train_range` chooses from the training text alone, before it is encoded, and the limits count blocks.
/// Tokens are looked up in the cache that token_cache_folder() names, and left there.
///
/// Throws InputError for a file that is missing or empty, one that gives no block, and limits beyond the
/// blocks.
DataSplits load_text(const DataOptions& options, TextForm form, const fs::path& train, const fs::path& test) {
  const TextReader reader(options, form);
  return {reader.read(train, options.settings.numbers("train_range"), options.train_limit, "data.train_limit"),
          reader.read(test, {0.0, 1.0}, options.test_limit, "data.test_limit"), reader.vocab()};
}

/// What the kinds of text have in common.
DataKind kind_of_text(const char* name) {
  DataKind kind;
  kind.name = name;
  kind.task = "language modeling";
  kind.is_text = true;
  kind.batch_size = 8;
  kind.keys = {
      {"block", 1024, at_least(2), "tokens per sample"},
      {"tokenizer", "", path_text(),
       "folder of the tokenizer's files; empty: that of model.init where it holds one, or else gpt2/ below "
       "data.root",
       true},
      {"train_range", std::vector<double>{0.0, 1.0}, range_of_share(),
       "share of the training text, cut at articles or lines"},
  };
  kind.form = [](const DataOptions& options) -> SampleForm { return {{options.settings.integer("block")}, 0}; };
  return kind;
}

}  // namespace

DataKind wikitext2_kind() {
  DataKind kind = kind_of_text("wikitext2");
  kind.load = [](const DataOptions& options) {
    return load_text(options, TextForm::wikitext, wikitext_file(options, "wiki.train.raw"),
                     wikitext_file(options, "wiki.valid.raw"));
  };
  return kind;
}

DataKind text_kind() {
  DataKind kind = kind_of_text("text");
  kind.keys.push_back({"train_file", "", path_text(), "the training text", true});
  kind.keys.push_back({"test_file", "", path_text(), "the test text", true});
  kind.keys.push_back(
      {"special_tokens", false, yes_or_no(), "special tokens in the texts, such as <|endoftext|>, are tokens"});
  kind.load = [](const DataOptions& options) {
    const bool is_marked = options.settings.flag("special_tokens");
    return load_text(options, is_marked ? TextForm::marked : TextForm::plain, text_file(options, "train_file"),
                     text_file(options, "test_file"));
  };
  return kind;
}

}  // namespace strait
