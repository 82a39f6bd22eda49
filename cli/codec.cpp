#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/codec_apply.h"
#include "cli/codec_bench.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "strait/base/text.h"
#include "strait/codecs/codec.h"
#include "strait/links/link.h"
#include "strait/train/options.h"

namespace strait::cli {
namespace {

using Json = nlohmann::ordered_json;

int list_as_json() {
  Json codecs = Json::array();
  for (const auto& info : codec_list()) {
    codecs.push_back(
        {{"name", info.name}, {"id", info.id}, {"parameters", info.parameters}, {"samples", info.samples}});
  }
  print(Json{{"codecs", codecs}}.dump() + "\n");
  return 0;
}

int list_as_table() {
  std::string table = fmt::format("{:<11} {:>4}  {:<16} {}\n", "name", "id", "example", "spec");
  for (const auto& info : codec_list()) {
    table += fmt::format("{:<11} {:>4}  {:<16} {}{}\n", info.name, info.id, info.samples.front(), info.name,
                         info.parameters);
  }
  print(table);
  return 0;
}

void add_list(CLI::App& codec, Action& action) {
  auto* list = codec.add_subcommand("list", "The codecs, their parameters and example specs");
  auto json = std::make_shared<bool>(false);
  list->add_flag("--json", *json, "Print one JSON object");
  list->callback([&action, json] { action = *json ? &list_as_json : &list_as_table; });
}

void add_apply(CLI::App& codec, Action& action) {
  auto* apply = codec.add_subcommand("apply", "Send the tensors of a file through a codec and measure it");
  auto options = std::make_shared<CodecApplyOptions>();
  apply->add_option("--codec", options->codec, "Codec spec, see strait codec list")
      ->required()
      ->type_name("SPEC");
  apply->add_option("--feedback", options->feedback, "Feedback scheme: " + list_of(link_forms()))
      ->type_name("SPEC")
      ->capture_default_str();
  apply
      ->add_option("--in", options->in,
                   "float32 tensors named 0, 1, 2, ..., batch first; for feedback that keeps samples also "
                   "int64 ids.0, ids.1, ...")
      ->required()
      ->type_name("FILE.safetensors");
  apply
      ->add_option("--out", options->out,
                   "What the receiver sees, under the same names; another file than --in")
      ->required()
      ->type_name("FILE.safetensors");
  apply->add_flag("--json", options->json, "Print one JSON object");
  apply->callback([&action, options] { action = [options] { return run_codec_apply(*options); }; });
}

void add_bench(CLI::App& codec, Action& action) {
  auto* bench = codec.add_subcommand(
      "bench",
      "Verify codecs and time them against memcpy and LibTorch, in 10^9 bytes of float32 tensor per second");
  auto options = std::make_shared<CodecBenchOptions>();
  bench->add_option("--codec", options->codecs, "Codec spec (may be repeated; default: four of every kind)")
      ->type_name("SPEC")
      ->allow_extra_args(false);
  bench->add_option("--feedback", options->feedback, "Feedback scheme: " + list_of(link_forms()))
      ->type_name("SPEC")
      ->capture_default_str();
  auto* shape = bench
                    ->add_option("--shape", options->shapes,
                                 "Batch first, of normal numbers and of the same after ReLU (may be repeated; "
                                 "default: 100x64x32x32 and 8x1024x768)")
                    ->type_name("AxBxC")
                    ->allow_extra_args(false);
  bench->add_option("--in", options->in, "Time the float32 tensors of a file")
      ->type_name("FILE.safetensors")
      ->excludes(shape);
  bench
      ->add_option("--threads", options->threads,
                   "Threads of codecs, memcpy and LibTorch; 0: OMP_NUM_THREADS, or one per core")
      ->check(CLI::Range(0, kMostThreads))
      ->capture_default_str();
  bench
      ->add_option("--device", options->device,
                   "auto, cpu, cuda or cuda:N; on a GPU codecs are verified against the CPU's and timed by its "
                   "events, against copies there")
      ->type_name("DEVICE")
      ->capture_default_str();
  bench->add_flag("--json", options->json, "Print one JSON object");
  bench->footer(
      "bits, index and bound are bits of payload for every element of the tensor: all of it, its index\n"
      "sets, and log2 C(n, k), the fewest bits that any code of the index sets can take on average.");
  bench->callback([&action, options] { action = [options] { return run_codec_bench(*options); }; });
}

}  // namespace

void add_codec(CLI::App& app, Action& action) {
  auto* codec = app.add_subcommand("codec", "List, try and time the compression operators");
  codec->require_subcommand(1);
  add_list(*codec, action);
  add_apply(*codec, action);
  add_bench(*codec, action);
}

}  // namespace strait::cli
