// Times the tokenizer of GPT-2 on one thread over the training text of WikiText-2: cutting into pieces,
// encoding as a whole and line by line, encoding by an encoder that has met every piece before, decoding;
// besides, loading the files, and words of growing length in which nothing comes again. Every text is verified
// to come back from its tokens before it is timed. MB is 10^6 bytes of text a second.
//
// Needs gpt2/ and wikitext-2-raw/ in the folder that STRAIT_DATA names, and does nothing where it lacks one.

#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/data/text_source.h"
#include "strait/tokenizer/bpe_encoder.h"
#include "strait/tokenizer/pre_tokenizer.h"
#include "strait/tokenizer/tokenizer.h"

namespace strait {
namespace {

std::filesystem::path root;

const Tokenizer& gpt2() {
  static const Tokenizer kTokenizer = load_tokenizer(root / "gpt2");
  return kTokenizer;
}

const std::string& text() {
  static const std::string kText = read_whole(root / "wikitext-2-raw" / "wiki.train.raw");
  return kText;
}

std::vector<int32_t> verified_tokens(const std::string& of) {
  auto ids = gpt2().encode(of);
  STRAIT_CHECK(gpt2().decode(ids) == of, "{} bytes do not come back", of.size());
  return ids;
}

/// Runs `work` over a text that has been verified.
template <class Work>
void time_text(benchmark::State& state, const std::string& of, Work work) {
  const auto ids = verified_tokens(of);
  for ([[maybe_unused]] auto run : state) work(of, ids);
  const auto bytes = static_cast<double>(of.size()) * static_cast<double>(state.iterations());
  state.counters["MB"] = benchmark::Counter(bytes / 1e6, benchmark::Counter::kIsRate);
  state.counters["tokens"] = static_cast<double>(ids.size());
}

void cut(const std::string& of, const std::vector<int32_t>& /*ids*/) {
  PreTokenizer pieces(of, gpt2().patterns());
  while (const auto piece = pieces.next()) benchmark::DoNotOptimize(piece->data());
}

void encode(const std::string& of, const std::vector<int32_t>& /*ids*/) {
  benchmark::DoNotOptimize(gpt2().encode(of));
}

void encode_lines(const std::string& of, const std::vector<int32_t>& /*ids*/) {
  benchmark::DoNotOptimize(encode_text(gpt2(), of, TextForm::wikitext));
}

void decode(const std::string& /*of*/, const std::vector<int32_t>& ids) {
  benchmark::DoNotOptimize(gpt2().decode(ids));
}

void encode_again(benchmark::State& state) {
  BpeEncoder encoder(gpt2());
  std::vector<int32_t> ids;
  encoder.append(text(), ids);
  time_text(state, text(), [&](const std::string& of, const std::vector<int32_t>& /*ids*/) {
    ids.clear();
    encoder.append(of, ids);
  });
}

void load(benchmark::State& state) {
  for ([[maybe_unused]] auto run : state) benchmark::DoNotOptimize(load_tokenizer(root / "gpt2").vocab_size());
}

void one_word(benchmark::State& state) {
  std::mt19937 random(1);
  std::string word(static_cast<size_t>(state.range(0)), ' ');
  for (auto& letter : word) letter = static_cast<char>('a' + random() % 26);
  time_text(state, word, encode);
}

void register_all() {
  for (const auto& [name, work] :
       {std::pair{"cut", &cut}, {"encode", &encode}, {"encode_lines", &encode_lines}, {"decode", &decode}}) {
    benchmark::RegisterBenchmark(name, [work = work](benchmark::State& state) {
      time_text(state, text(), work);
    })->Unit(benchmark::kMillisecond);
  }
  benchmark::RegisterBenchmark("encode_again", encode_again)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("load", load)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("one_word", one_word)
      ->RangeMultiplier(10)
      ->Range(1000, 1'000'000)
      ->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace strait

int main(int argc, char** argv) {
  const char* data = std::getenv("STRAIT_DATA");
  strait::root = data == nullptr ? "" : data;
  if (!exists(strait::root / "gpt2") || !exists(strait::root / "wikitext-2-raw")) {
    std::puts("bench_tokenizer: STRAIT_DATA names no folder that has gpt2/ and wikitext-2-raw/");
    return 0;
  }
  strait::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
