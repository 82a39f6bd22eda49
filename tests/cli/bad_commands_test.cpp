#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

/// A command line that must fail, and words that its one line of error must hold. In the arguments and the
/// words, `{dir}` is the folder that the test fills.
struct BadCommand {
  std::vector<std::string> arguments;
  int status;
  std::vector<std::string> words;
};

std::string in_folder(std::string text, const std::string& folder) {
  const std::string mark = "{dir}";
  for (size_t at; (at = text.find(mark)) != std::string::npos;) text.replace(at, mark.size(), folder);
  return text;
}

/// Little-endian float32 bytes of a value, for hand-made tensor files.
std::string float_bytes(float value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

/// A .safetensors file of a header and its data.
std::string tensor_file(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof(size)) + header + data;
}

class BadCommands : public testing::TestWithParam<BadCommand> {
 protected:
  BadCommands() {
    const std::string float_1 = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
    const std::string zero = float_bytes(0);
    test::write_file(dir_ / "tiny.toml",
                     "[model]\nwidth = 2\n[data]\nkind = \"shapes\"\ntrain_limit = 20\ntest_limit = 20\n");
    std::filesystem::create_symlink("loop", dir_ / "loop");
    std::filesystem::create_directories(dir_ / "short/cifar-10-batches-bin");
    test::write_file(dir_ / "short/cifar-10-batches-bin/data_batch_1.bin", std::string(3073, '\0'));
    test::write_file(dir_ / "cut.safetensors", tensor_file("{\"0\":" + float_1 + "}", "\0\0"));
    test::write_file(dir_ / "good.safetensors", tensor_file("{\"0\":" + float_1 + "}", zero));
    test::write_file(dir_ / "gap.safetensors", tensor_file("{\"1\":" + float_1 + "}", zero));
    test::write_file(dir_ / "weights.safetensors", tensor_file("{\"conv1.weight\":" + float_1 + "}", zero));
    test::write_file(dir_ / "int.safetensors",
                     tensor_file(R"({"0":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", zero + zero));
    test::write_file(dir_ / "scalar.safetensors",
                     tensor_file(R"({"0":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", zero));
    test::write_file(dir_ / "hollow.safetensors",
                     tensor_file(R"({"0":{"dtype":"F32","shape":[0,2],"data_offsets":[0,0]}})", ""));
    test::write_file(dir_ / "empty.safetensors", tensor_file("{}", ""));
    test::write_file(dir_ / "nan.safetensors", tensor_file("{\"0\":" + float_1 + "}", float_bytes(NAN)));
  }

  test::TempDir dir_;
};

TEST_F(BadCommands, AsManyThreadsAsNoSystemStartsAreRefused) {
  const auto result = test::run_process(STRAIT_PROGRAM, {"train", dir_ / "tiny.toml", "--out", dir_ / "run"},
                                        {"OMP_NUM_THREADS=70000"});
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "strait: OMP_NUM_THREADS: expected at most 1024, found 70000\n");
}

TEST_F(BadCommands, AnInstructionSetThatIsNoneIsRefused) {
  const auto result = test::run_process(STRAIT_PROGRAM,
                                        {"codec", "apply", "--codec", "quant:4", "--in",
                                         dir_ / "good.safetensors", "--out", dir_ / "out.safetensors"},
                                        {"STRAIT_KERNELS=AVX9"});
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err,
              testing::MatchesRegex("strait: [^\n]*STRAIT_KERNELS: expected one of: [^\n]*; found \"AVX9\"\n"));
}

TEST_F(BadCommands, CodecApplyDoesNotWriteOverItsInput) {
  const std::string in = dir_ / "good.safetensors";
  const std::string before = test::read_file(in);
  std::filesystem::create_symlink(in, dir_ / "link.safetensors");
  std::filesystem::create_hard_link(in, dir_ / "other.safetensors");
  const std::string places[] = {in, dir_ / "./good.safetensors", dir_ / "link.safetensors",
                                dir_ / "other.safetensors"};
  for (const std::string& out : places) {
    const auto result =
        test::run_process(STRAIT_PROGRAM, {"codec", "apply", "--codec", "quant:4", "--in", in, "--out", out});
    EXPECT_EQ(result.status, 2) << out;
    EXPECT_EQ(result.err, "strait: --out: " + out + ": expected another file than the one that is read\n");
  }
  EXPECT_EQ(test::read_file(in), before);
}

TEST_P(BadCommands, FailWithOneLineOnStandardError) {
  std::vector<std::string> arguments;
  for (const auto& argument : GetParam().arguments) arguments.push_back(in_folder(argument, dir_.path()));
  const auto result = test::run_process(STRAIT_PROGRAM, arguments);
  EXPECT_EQ(result.status, GetParam().status);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, testing::StartsWith("strait: "));
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  for (const auto& word : GetParam().words)
    EXPECT_THAT(result.err, testing::HasSubstr(in_folder(word, dir_.path())));
}

INSTANTIATE_TEST_SUITE_P(
    Usage, BadCommands,
    testing::Values(
        BadCommand{{}, 2, {"expected a verb", "codec", "strait --help"}},
        BadCommand{{"codex"}, 2, {"strait has no verb \"codex\"", "did you mean \"codec\"?"}},
        BadCommand{{""}, 2, {"strait has no verb \"\""}},
        BadCommand{{"two\nlines"}, 2, {"strait has no verb \"two lines\""}},
        BadCommand{{"--versoin"}, 2, {"strait has no flag --versoin", "did you mean \"--version\"?"}},
        BadCommand{{"-x", "codec"}, 2, {"strait has no flag -x"}},
        BadCommand{{"codec"}, 2, {"expected a verb behind \"strait codec\"", "list", "apply", "bench"}},
        BadCommand{{"codec", "lits"}, 2, {"strait codec has no verb \"lits\"", "did you mean \"list\"?"}},
        BadCommand{{"codec", "list", "--jsno"},
                   2,
                   {"strait codec list has no flag --jsno", "did you mean \"--json\"?"}},
        BadCommand{{"codec", "list", "more"}, 2, {"more"}},
        BadCommand{
            {"codec", "apply"}, 2, {"strait codec apply needs --codec SPEC", "see strait codec apply --help"}},
        BadCommand{{"codec", "apply", "--codec"}, 2, {"--codec"}},
        BadCommand{{"codec", "apply", "--codec", "none", "--inn", "a", "--out", "b"},
                   2,
                   {"no flag --inn", "did you mean \"--in\"?"}}));

/// `strait codec apply` with a spec and an input file; the output would be {dir}/out.safetensors.
BadCommand apply(const std::string& codec, const std::string& in, std::vector<std::string> words) {
  return {
      {"codec", "apply", "--codec", codec, "--in", "{dir}/" + in, "--out", "{dir}/out.safetensors", "--json"},
      2,
      std::move(words)};
}

INSTANTIATE_TEST_SUITE_P(
    CodecApply, BadCommands,
    testing::Values(
        apply("nome", "good.safetensors", {"unknown codec \"nome\"", "did you mean \"none\"?"}),
        apply("none:3", "good.safetensors", {"codec \"none:3\""}),
        apply("none,scope=sample", "good.safetensors", {"no option \"scope\""}),
        apply("", "good.safetensors", {"unknown codec \"\"", "none"}),
        apply("none", "missing.safetensors", {"{dir}/missing.safetensors"}),
        apply("none", "gap.safetensors",
              {"{dir}/gap.safetensors",
               "expected tensors named \"0\", \"1\", ... without a gap; found \"1\" of 1"}),
        apply("none", "weights.safetensors",
              {"{dir}/weights.safetensors",
               "expected tensors named \"0\", \"1\", ... without a gap; found \"conv1.weight\""}),
        apply("none", "int.safetensors",
              {"{dir}/int.safetensors", "tensor \"0\"", "expected float32, found int64"}),
        apply("none", "scalar.safetensors", {"{dir}/scalar.safetensors", "tensor \"0\"", "one dimension"}),
        apply("none", "cut.safetensors", {"{dir}/cut.safetensors", "tensor \"0\""}),
        apply("none", "empty.safetensors", {"{dir}/empty.safetensors", "found no tensors"}),
        apply("none", "nan.safetensors", {"{dir}/nan.safetensors", "tensor \"0\"", "not finite"}),
        BadCommand{{"codec", "apply", "--codec", "none", "--feedback", "nome", "--in", "a", "--out", "b"},
                   2,
                   {"unknown feedback \"nome\"", "did you mean \"none\"?"}},
        apply("auto", "good.safetensors", {"--codec \"auto\": expected a codec of strait codec list"}),
        BadCommand{{"codec", "apply", "--codec", "none", "--in", "{dir}/good.safetensors", "--out",
                    "{dir}/no/such/folder/out.safetensors"},
                   2,
                   {"--out: {dir}/no/such/folder/out.safetensors: cannot be written: No such file"}},
        BadCommand{{"codec", "apply", "--codec", "none", "--in", "{dir}/good.safetensors", "--out", "{dir}"},
                   2,
                   {"--out: {dir}: expected the name of a file, found a folder"}},
        BadCommand{{"codec", "apply", "--codec", "none", "--in", "{dir}/good.safetensors", "--out", ""},
                   2,
                   {"strait: --out: expected the name of a file, found none\n"}},
        BadCommand{
            {"codec", "apply", "--codec", "none", "--in", "{dir}/good.safetensors", "--out", "/dev/full"},
            2,
            {"--out: /dev/full: expected the name of a file, found a device"}}));

// The flag and the spec stand before what is wrong, each once.
INSTANTIATE_TEST_SUITE_P(
    CodecSpecs, BadCommands,
    testing::Values(
        apply("quant:0", "good.safetensors",
              {"strait: --codec \"quant:0\": the bits of a quantised value must be an integer from 1 to 8, not "
               "\"0\""}),
        apply("quant:4,scope=block:x", "good.safetensors",
              {"strait: --codec \"quant:4,scope=block:x\": a block must be an integer from 8 to"}),
        apply("lowrank:0", "good.safetensors", {"strait: --codec \"lowrank:0\": the rank of a matrix must be"}),
        apply("nome", "good.safetensors", {"strait: --codec \"nome\": unknown codec \"nome\""}),
        BadCommand{{"codec", "bench", "--codec", "fp16", "--codec", "quant:0"},
                   2,
                   {"strait: --codec \"quant:0\": the"}},
        BadCommand{{"codec", "bench", "--codec", "none", "--feedback", "ef,slots=x"},
                   2,
                   {"strait: --feedback \"ef,slots=x\": slots must be"}},
        BadCommand{{"codec", "bench", "--codec", "none", "--feedback", "ef-mixed"},
                   2,
                   {"strait: --feedback \"ef-mixed\": feedback \"ef-mixed\" needs a codec that selects"}}));

/// `strait codec bench` of codec none with a flag.
BadCommand bench(const std::string& flag, const std::string& value, std::vector<std::string> words) {
  return {{"codec", "bench", "--json", "--codec", "none", flag, value}, 2, std::move(words)};
}

INSTANTIATE_TEST_SUITE_P(
    CodecBench, BadCommands,
    testing::Values(
        bench("--shape", "3xx", {"--shape 3xx", "integer", "not \"\""}),
        bench("--shape", "", {"--shape", "integer"}), bench("--shape", "4x-1", {"--shape 4x-1", "not \"-1\""}),
        bench("--shape", "70000x70000", {"--shape 70000x70000", "to 30678", "not \"70000\""}),
        bench("--codec", "nome", {"unknown codec \"nome\"", "did you mean \"none\"?"}),
        bench("--feedback", "eff", {"unknown feedback \"eff\"", "did you mean \"ef\"?"}),
        bench("--feedback", "ef-mixed", {"ef-mixed", "needs a codec that selects", "\"none\""}),
        bench("--threads", "-1", {"--threads"}),
        bench("--shapes", "4", {"no flag --shapes", "did you mean \"--shape\"?"}),
        bench("--in", "{dir}/missing.safetensors", {"{dir}/missing.safetensors"}),
        bench("--in", "{dir}/int.safetensors",
              {"{dir}/int.safetensors", "tensor \"0\"", "expected float32, found int64"}),
        bench("--in", "{dir}/scalar.safetensors",
              {"{dir}/scalar.safetensors", "tensor \"0\"", "one dimension"}),
        bench("--in", "{dir}/hollow.safetensors", {"{dir}/hollow.safetensors", "tensor \"0\"", "one element"}),
        bench("--in", "{dir}/empty.safetensors", {"{dir}/empty.safetensors", "found no tensors"}),
        bench("--in", "{dir}/nan.safetensors",
              {"{dir}/nan.safetensors", "tensor \"0\"", "codec none", "not finite"}),
        BadCommand{
            {"codec", "bench", "--shape", "4", "--in", "{dir}/good.safetensors"}, 2, {"--in", "--shape"}},
        bench("--device", "gpu", {"--device gpu", "expected one of", "cuda:N", "did you mean \"cuda\""}),
        bench("--device", "cuda:999", {"--device: ", "cuda:999"})));

INSTANTIATE_TEST_SUITE_P(
    Data, BadCommands,
    testing::Values(
        BadCommand{{"data"}, 2, {"expected a verb behind \"strait data\"", "get", "check", "info"}},
        BadCommand{{"data", "gte"}, 2, {"strait data has no verb \"gte\"", "did you mean \"get\"?"}},
        BadCommand{{"data", "info"}, 2, {"strait data info needs NAME, one of: ", "gpt2-tokenizer"}},
        BadCommand{{"data", "info", "cifar11"}, 2, {"cifar11", "cifar10"}},
        BadCommand{{"data", "get", "cifar11", "--root", "{dir}"}, 2, {"cifar11", "cifar10"}},
        BadCommand{{"data", "check", "cifar10", "--rot", "{dir}"}, 2, {"did you mean \"--root\"?"}},
        BadCommand{{"data", "get", "cifar10", "--root", "{dir}", "--mirror", "file:///nowhere/at/all"},
                   1,
                   {"file:///nowhere/at/all"}}));

INSTANTIATE_TEST_SUITE_P(
    Report, BadCommands,
    testing::Values(
        BadCommand{{"report"}, 2, {"strait report needs DIR", "folders of runs"}},
        BadCommand{{"report", "{dir}/none", "--out", "{dir}/r.html"}, 2, {"{dir}/none", "is not a folder"}},
        BadCommand{{"report", "{dir}", "--out", "{dir}/r.html"}, 2, {"{dir}", "status.json", "sweep.json"}},
        BadCommand{{"report", "{dir}", "--out", "{dir}/r.csv"}, 2, {"--out", ".html", "{dir}/r.csv"}},
        BadCommand{{"report", "--latex", "{dir}", "{dir}"}, 2, {"--latex", ".tex", "{dir}"}},
        BadCommand{{"report", "{dir}", "--watch", "--latex"}, 2, {"--watch", "leave out --latex"}},
        BadCommand{{"report", "{dir}", "--watch", "--port", "70000"}, 2, {"--port", "70000"}},
        BadCommand{{"report", "{dir}", "--port", "7000"}, 2, {"--port", "--watch"}},
        BadCommand{{"report", "{dir}", "--watch"}, 2, {"{dir}", "status.json"}},
        BadCommand{{"report", "{dir}", "--out", "{dir}/no/r.html"},
                   2,
                   {"--out: {dir}/no/r.html: cannot be written: No such file"}},
        BadCommand{{"report", "{dir}", "--out", "{dir}/r.html", "--latex", "{dir}/no/r.tex"},
                   2,
                   {"--latex: {dir}/no/r.tex: cannot be written: No such file"}},
        BadCommand{{"report", "{dir}", "--otu", "r.html"}, 2, {"did you mean \"--out\"?"}}));

/// `strait train` of a configuration with one line wrong.
BadCommand train(const std::string& setting, std::vector<std::string> words) {
  return {{"train", "{dir}/tiny.toml", "--set", setting, "--out", "{dir}/run"}, 2, std::move(words)};
}

INSTANTIATE_TEST_SUITE_P(
    Train, BadCommands,
    testing::Values(
        BadCommand{{"train"},
                   2,
                   {"strait train needs CONFIG.toml, configuration file, or the folder of a run that has one; "
                    "see strait train --help"}},
        BadCommand{{"train", "{dir}"}, 2, {"{dir}: expected a file, found a folder"}},
        BadCommand{{"train", "{dir}/none.toml"}, 2, {"{dir}/none.toml"}},
        BadCommand{{"trian", "x.toml"}, 2, {"no verb \"trian\"", "did you mean \"train\"?"}},
        train("train.epoch=3", {"train.epoch", "did you mean \"train.epochs\"?"}),
        train("train.epochs=three", {"train.epochs", "expected an integer"}),
        train("train.epochs=0", {"train.epochs", "found 0"}),
        train("train.optimizer.lr=-1", {"train.optimizer.lr"}),
        train("train.threads=1025", {"train.threads", "expected an integer from 0 to 1024, found 1025"}),
        train("networks=[{name=\"home\"}]",
              {"networks[0].bandwidth", "expected a rate", "unlimited", "\"home\""}),
        train("train.device=tpu", {"train.device", "cpu"}),
        train("codec=topk:0.1", {"\"codec\"", "did you mean \"compression.activations.codec\"?"}),
        train("model.cuts=[\"layr1\"]", {"model.cuts", "\"layr1\"", "did you mean \"layer1\"?"}),
        train("model.cuts=[\"layer2\", \"layer1\"]", {"model.cuts", "\"layer1\" does not come after"}),
        train("compression.activations.codec=quant:9", {"compression.activations.codec", "quant:9"}),
        train("compression.gradients.codec=topk:0", {"compression.gradients.codec", "topk:0"}),
        train("compression.gradients.feedback=nome", {"unknown feedback \"nome\""}),
        train("data.kind=mnist", {"data.kind", "shapes"}),
        train("data.train_limit=99999999", {"data.train_limit"}),
        train("pipeline.micro_batches=1000", {"pipeline.micro_batches"}),
        BadCommand{
            {"train", "experiments/small/resnet18.toml", "--set", "data.root={dir}", "--out", "{dir}/run"},
            2,
            {"{dir}", "data_batch_1.bin"}},
        BadCommand{{"train", "experiments/small/resnet18.toml", "--set", "data.root={dir}/short", "--out",
                    "{dir}/run"},
                   2,
                   {"{dir}/short/cifar-10-batches-bin/data_batch_1.bin", "3073", "30730000"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--set", "compression.activations.codec=quant:4", "--set",
                    "compression.activations.feedback=aq-sgd", "--set", "compression.store.place=file", "--set",
                    "compression.store.folder=/dev/null/x", "--out", "{dir}/run"},
                   2,
                   {"compression.store.folder: /dev/null/x: cannot hold a file"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--out", "{dir}/run", "--trace", "{dir}/no/such/trace.json"},
                   2,
                   {"--trace: {dir}/no/such/trace.json: cannot be written: No such file"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--dry-run", "--trace", "{dir}/no/such/trace.json"},
                   2,
                   {"--trace: {dir}/no/such/trace.json"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--dry-run", "--trace", "{dir}/loop/trace.json"},
                   2,
                   {"{dir}/loop: cannot be read: Too many levels of symbolic links"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--dry-run", "--out", "{dir}/loop"},
                   2,
                   {"{dir}/loop/checkpoint: cannot be read: Too many levels of symbolic links"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--dry-run", "--out", "{dir}/loop", "--trace",
                    "{dir}/no/such/trace.json"},
                   2,
                   {"--trace: {dir}/no/such/trace.json"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--out", "{dir}/run", "--trace", "{dir}/tiny.toml"},
                   2,
                   {"--trace: {dir}/tiny.toml: expected another file than the one that is read"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--set", "data.kind=tensors", "--set", "model.kind=mlp",
                    "--set", "model.cuts=[]", "--set", "data.train_file=a.safetensors", "--set",
                    "data.test_file=a.safetensors", "--set", "data.root={dir}", "--out", "{dir}/run"},
                   2,
                   {"data.train_file: no file a.safetensors, here or below data.root, which is \"{dir}\""}},
        BadCommand{
            {"train", "{dir}/tiny.toml", "--set", "model.width=1000000", "--out", "{dir}/run"},
            2,
            {"strait: model: a resnet18 of these keys has 2.72e+15 parameters, which take 1.09e+07 GB; "}},
        BadCommand{
            {"train", "{dir}/tiny.toml", "--set", "name=" + std::string(100'000, 'a'), "--out", "{dir}/run"},
            2,
            {"strait: --set name=aaa", std::string(1000, 'a') + "...\n"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--out", "/dev/null/run"}, 2, {"/dev/null/run"}}));

INSTANTIATE_TEST_SUITE_P(
    Eval, BadCommands,
    testing::Values(
        BadCommand{{"eval", "{dir}/tiny.toml"},
                   2,
                   {"--weights: expected a file, or the folder of a run that has its weights"}},
        BadCommand{{"eval", "{dir}/tiny.toml", "--weights", "{dir}"},
                   2,
                   {"{dir}: has no weights, expected model.safetensors or model.safetensors.index.json"}},
        BadCommand{
            {"eval", "{dir}/tiny.toml", "--weights", "{dir}/none.safetensors"}, 2, {"{dir}/none.safetensors"}},
        BadCommand{{"eval", "{dir}/tiny.toml", "--weights", "{dir}/loop"},
                   2,
                   {"strait: {dir}/loop: cannot be read: Too many levels of symbolic links\n"}},
        BadCommand{{"eval", "{dir}/tiny.toml", "--weights", "{dir}/tiny.toml"},
                   2,
                   {"{dir}/tiny.toml: is not a safetensors file (header length is "}},
        BadCommand{{"eval", "{dir}/tiny.toml", "--weights", "{dir}/weights.safetensors"},
                   2,
                   {"{dir}/weights.safetensors", "tensor \"conv1.weight\"", "shape [1]", "expected"}},
        BadCommand{{"eval", "{dir}/tiny.toml", "--weights", "{dir}/empty.safetensors"},
                   2,
                   {"{dir}/empty.safetensors", "tensor \"conv1.weight\" is missing"}}));

/// `strait sweep` of a good file with flags that are wrong.
BadCommand sweep(std::vector<std::string> flags, std::vector<std::string> words) {
  flags.insert(flags.begin(), {"sweep", "experiments/demo.toml", "--out", "{dir}/sweep"});
  return {std::move(flags), 2, std::move(words)};
}

INSTANTIATE_TEST_SUITE_P(
    Sweep, BadCommands,
    testing::Values(
        BadCommand{{"sweep"}, 2, {"strait sweep needs SWEEP.toml, sweep file"}},
        BadCommand{{"sweep", "{dir}/none.toml"}, 2, {"{dir}/none.toml"}},
        BadCommand{{"sweep", "experiments/demo.toml", "--out", "/dev/null/sweep"}, 2, {"/dev/null"}},
        sweep({"--jobs", "0"}, {"--jobs", "expected an integer from 1 to", "found 0"}),
        sweep({"--jobs", "100000"}, {"--jobs", "number of cores", "found 100000"}),
        sweep({"--jobs", "two"}, {"--jobs", "two"}),
        sweep({"--seed", "-1"}, {"--seed", "-1 not in range 0 to"}),
        sweep({"--out", ""}, {"--out: expected a value, found none"}),
        BadCommand{{"train", "{dir}/tiny.toml", "--out", ""}, 2, {"--out: expected a value, found none"}},
        BadCommand{{"train", "{dir}/tiny.toml", "--trace", ""}, 2, {"--trace: expected a value"}},
        BadCommand{{"plan", "{dir}/tiny.toml", "--links", ""}, 2, {"--links: expected a value, found none"}},
        BadCommand{{"plan", "{dir}/tiny.toml", "--measured", ""}, 2, {"--measured: expected a value"}},
        BadCommand{{"plan", "{dir}/tiny.toml", "--stages", ""}, 2, {"--stages: expected a value"}},
        BadCommand{
            {"eval", "{dir}/tiny.toml", "--weights", ""}, 2, {"--weights: expected a value, found none"}},
        BadCommand{
            {"doctor", "{dir}/tiny.toml", "--folder", ""}, 2, {"--folder: expected a value, found none"}},
        BadCommand{{"data", "check", "cifar10", "--root", ""}, 2, {"--root: expected a value, found none"}},
        BadCommand{{"generate", "{dir}/tiny.toml", "--seed", "-1"}, 2, {"--seed", "-1 not in range 0 to"}},
        BadCommand{{"generate", "{dir}/tiny.toml", "--temperature", "nan"},
                   2,
                   {"--temperature: expected a number from 0 to 1e+06, found \"nan\""}},
        sweep({"--only", "fw4-bw9"}, {"no variant \"fw4-bw9\"", "did you mean \"fw4-bw8\"?"}),
        sweep({"--onyl", "none"}, {"--onyl", "did you mean \"--only\"?"})));

}  // namespace
}  // namespace strait
