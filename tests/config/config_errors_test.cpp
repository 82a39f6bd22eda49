#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "strait/base/error.h"
#include "strait/config/config.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

std::string complaint(const std::string& text) {
  return test::error_of<InputError>([&] { parse_config(text, "a.toml"); });
}

struct BadText {
  const char* text;
  const char* message;
};

class BadFile : public testing::TestWithParam<BadText> {};

TEST_P(BadFile, IsNamedOnOneLine) { EXPECT_EQ(complaint(GetParam().text), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(
    Types, BadFile,
    testing::Values(
        BadText{"seed = \"3\"", "a.toml:1: seed: expected an integer, found \"3\""},
        BadText{"[train]\nepochs = 1.5", "a.toml:2: train.epochs: expected an integer, found 1.5"},
        BadText{"[train]\nepochs = 2.0", "a.toml:2: train.epochs: expected an integer, found 2.0"},
        BadText{"train.threads = true", "a.toml:1: train.threads: expected an integer, found true"},
        BadText{"data.batch_size = []", "a.toml:1: data.batch_size: expected an integer, found an array"},
        BadText{"train.optimizer.lr = \"0.1\"",
                "a.toml:1: train.optimizer.lr: expected a number, found \"0.1\""},
        BadText{"train.optimizer.lr = false", "a.toml:1: train.optimizer.lr: expected a number, found false"},
        BadText{"name = 3", "a.toml:1: name: expected a string, found 3"},
        BadText{"name = 2020-01-01", "a.toml:1: name: expected a string, found a date or time"},
        BadText{"[name]\na = 1", "a.toml:1: name: expected a string, found a table"},
        BadText{"model = 3", "a.toml:1: model: expected a table, found 3"},
        BadText{"[train]\noptimizer = \"sgd\"",
                "a.toml:2: train.optimizer: expected a table, found \"sgd\" (did you mean "
                "\"train.optimizer.kind\"?)"},
        BadText{"[[train]]\nepochs = 1", "a.toml:1: train: expected a table, found an array"},
        BadText{"model.cuts = \"layer1\"",
                "a.toml:1: model.cuts: expected an array of strings, found \"layer1\""},
        BadText{"model.cuts = [\"layer1\",\n2]",
                "a.toml:1: model.cuts: expected an array of strings, found 2 in it"}));

INSTANTIATE_TEST_SUITE_P(
    Ranges, BadFile,
    testing::Values(
        BadText{"seed = -1", "a.toml:1: seed: expected an integer >= 0, found -1"},
        BadText{"\n[train]\nepochs = 0", "a.toml:3: train.epochs: expected an integer >= 1, found 0"},
        BadText{"train.epochs = 2147483648",
                "a.toml:1: train.epochs: expected an integer <= 2147483647, found 2147483648"},
        BadText{"train.threads = -1", "a.toml:1: train.threads: expected an integer from 0 to 1024, found -1"},
        BadText{"train.optimizer.lr = 0", "a.toml:1: train.optimizer.lr: expected a number > 0, found 0.0"},
        BadText{"train.optimizer.lr = inf", "a.toml:1: train.optimizer.lr: expected a number > 0, found inf"},
        BadText{"train.optimizer.lr = 1e39",
                "a.toml:1: train.optimizer.lr: expected a number > 0 within float32, found 1e+39"},
        BadText{"train.optimizer.lr = nan", "a.toml:1: train.optimizer.lr: expected a number > 0, found nan"},
        BadText{"train.optimizer.momentum = 1",
                "a.toml:1: train.optimizer.momentum: expected a number >= 0 and < 1, found 1.0"},
        BadText{"train.optimizer.momentum = -0.1",
                "a.toml:1: train.optimizer.momentum: expected a number >= 0 and < 1, found -0.1"},
        BadText{"train.optimizer.weight_decay = -1e-4",
                "a.toml:1: train.optimizer.weight_decay: expected a number >= 0, found -0.0001"},
        BadText{"train.schedule.t_max = 0",
                "a.toml:1: train.schedule.t_max: expected an integer >= 1, found 0"},
        BadText{"[model]\nkind = \"gpt2\"\nlayers = 100000000",
                "a.toml:3: model.layers: expected an integer from 1 to 10000, found 100000000"},
        BadText{"[model]\nkind = \"mlp\"\nlayers = 10001",
                "a.toml:3: model.layers: expected an integer from 1 to 10000, found 10001"},
        BadText{"data.root = \"a\\u0000b\"", "a.toml:1: data.root: expected a path in UTF-8 without NUL"},
        BadText{"model.width = 0", "a.toml:1: model.width: expected an integer >= 1, found 0"},
        BadText{"data.batch_size = 0",
                "a.toml:1: data.batch_size: expected an integer from 1 to 1073741824, found 0"},
        BadText{
            "data.batch_size = 9223372036854775807",
            "a.toml:1: data.batch_size: expected an integer from 1 to 1073741824, found 9223372036854775807"},
        BadText{"checkpoint.copies = -2", "a.toml:1: checkpoint.copies: expected an integer >= -1, found -2"},
        BadText{"data.train_limit = -5", "a.toml:1: data.train_limit: expected an integer >= 0, found -5"},
        BadText{"data.test_limit = -1", "a.toml:1: data.test_limit: expected an integer >= 0, found -1"},
        BadText{
            "train.epochs = 3\n[compression]\nstart_epoch = 3\nstart_from = \"runs/none\"",
            "a.toml:3: compression.start_epoch: with compression.start_from expected less than train.epochs, "
            "which is 3, found 3: nothing would be trained"},
        BadText{"train.threads = 1025",
                "a.toml:1: train.threads: expected an integer from 0 to 1024, found 1025"},
        BadText{"compression.start_epoch = -1",
                "a.toml:1: compression.start_epoch: expected an integer >= 0, found -1"},
        BadText{"checkpoint.keep = 0", "a.toml:1: checkpoint.keep: expected an integer >= 1, found 0"},
        BadText{"checkpoint.every_epochs = -1",
                "a.toml:1: checkpoint.every_epochs: expected an integer >= 0, found -1"},
        BadText{"checkpoint.keep_epochs = [3, -2]",
                "a.toml:1: checkpoint.keep_epochs: expected an integer >= 0, found -2 in it"},
        BadText{"checkpoint.keep_epochs = [1, -4294967294]",
                "a.toml:1: checkpoint.keep_epochs: expected an array of integers, found -4294967294 in it"},
        BadText{"checkpoint.keep_epochs = 3",
                "a.toml:1: checkpoint.keep_epochs: expected an array of integers, found 3"},
        BadText{"checkpoint.keep_epochs = [1, 2.5]",
                "a.toml:1: checkpoint.keep_epochs: expected an array of integers, found 2.5 in it"},
        BadText{"compression.start_from_optimizer = 1",
                "a.toml:1: compression.start_from_optimizer: expected true or false, found 1"},
        BadText{"pipeline.micro_batches = 0",
                "a.toml:1: pipeline.micro_batches: expected an integer >= 1, found 0"},
        BadText{"pipeline.micro_batches = 101",
                "a.toml:1: pipeline.micro_batches: expected at most data.batch_size, which is 100, found 101"},
        BadText{"data.batch_size = 4\n[pipeline]\nmicro_batches = 5",
                "a.toml:3: pipeline.micro_batches: expected at most data.batch_size, which is 4, found 5"}));

INSTANTIATE_TEST_SUITE_P(
    Choices, BadFile,
    testing::Values(
        BadText{
            "model.kind = \"resnet\"",
            "a.toml:1: model.kind: expected one of: resnet18, mlp, gpt2, llama; found \"resnet\" (did you mean "
            "\"resnet18\"?)"},
        BadText{"data.kind = \"cifar100\"",
                "a.toml:1: data.kind: expected one of: cifar10, shapes, images, tensors, wikitext2, text; "
                "found \"cifar100\" "
                "(did you mean "
                "\"cifar10\"?)"},
        BadText{"train.device = \"gpu\"",
                "a.toml:1: train.device: expected one of: auto, cpu, cuda, cuda:N; found \"gpu\" (did you mean "
                "\"cuda\"?)"},
        BadText{"train.device = \"cuda:one\"",
                "a.toml:1: train.device: expected one of: auto, cpu, cuda, cuda:N; found \"cuda:one\""},
        BadText{"train.optimizer.kind = \"rmsprop\"",
                "a.toml:1: train.optimizer.kind: expected one of: sgd, adamw, adam; found \"rmsprop\""},
        BadText{"train.schedule.kind = \"cosin\"",
                "a.toml:1: train.schedule.kind: expected one of: cosine, constant, linear; found \"cosin\" "
                "(did you mean "
                "\"cosine\"?)"},
        BadText{"pipeline.stages_per_rank = 0",
                "a.toml:1: pipeline.stages_per_rank: expected an integer >= 1, found 0"},
        BadText{
            "pipeline.stages_per_rank = 2",
            "a.toml:1: pipeline.stages_per_rank: expected 1 with schedule \"1f1b\", which has one stage per "
            "rank, found 2; several are for schedule \"interleaved\""},
        BadText{"[pipeline]\nschedule = \"pipedream\"\nreplicas = 2",
                "a.toml:3: pipeline.replicas: expected 1 with schedule \"pipedream\", which steps after every "
                "micro-batch, found 2"},
        BadText{"train.accumulate = 3\npipeline.schedule = \"xpipe\"",
                "a.toml:1: train.accumulate: expected 1 with schedule \"xpipe\", which steps after every "
                "micro-batch, found 3"},
        BadText{
            "pipeline.schedule = \"xpipe\"\ntrain.precision = \"bf16\"",
            "a.toml:2: train.precision: expected \"fp32\" with schedule \"xpipe\", whose backward pass reads "
            "other weights than its forward pass, found \"bf16\""},
        BadText{"[pipeline]\nschedule = \"interleaved\"\nstages_per_rank = 3",
                "a.toml:3: pipeline.stages_per_rank: expected a number that divides the 4 stages, found 3"},
        BadText{"pipeline.replicas = 0", "a.toml:1: pipeline.replicas: expected an integer >= 1, found 0"},
        BadText{"data.batch_size = 4\npipeline.replicas = 5",
                "a.toml:2: pipeline.replicas: expected at most data.batch_size, which is 4, found 5"},
        BadText{"pipeline.replicas = 2\npipeline.micro_batches = 3\ndata.batch_size = 5",
                "a.toml:2: pipeline.micro_batches: expected at most data.batch_size / pipeline.replicas, which "
                "is 2, "
                "found 3"},
        BadText{"compression.replicas.feedback = \"aq-sgd\"",
                "a.toml:1: compression.replicas.feedback: expected one of: none, ef, ef21, diana, ef21-sgdm, "
                "marina; found "
                "\"aq-sgd\""},
        BadText{
            "compression.gradients.feedback = \"marina:0.1\"",
            "a.toml:1: compression.gradients.feedback: expected feedback that needs its message alone; this "
            "one needs gradients at the weights of the step before, which are there for "
            "compression.replicas of a training"},
        BadText{"model.cuts = [\"layer1\", \"layer2\"]\ncompression.replicas.feedback = \"marina:0.1\"\n"
                "compression.gradients = { codec = \"topk:0.1\", feedback = \"ef\" }",
                "a.toml:2: compression.replicas.feedback: \"marina:0.1\" takes every batch over the boundaries "
                "twice, so that their links are expected to keep nothing from message to message; "
                "compression.gradients of boundary layer1 is codec \"topk:0.1\", feedback \"ef\""},
        BadText{"pipeline.schedule = \"1F1B\"",
                "a.toml:1: pipeline.schedule: expected one of: gpipe, 1f1b, interleaved, pipedream, xpipe; "
                "found \"1F1B\" (did "
                "you mean "
                "\"1f1b\"?)"},
        BadText{"compression.auto.ladder = []",
                "a.toml:1: compression.auto.ladder: expected at least one codec, found none"},
        BadText{
            "compression.auto.ladder = [\"none\", \"quant:40\"]",
            "a.toml:1: compression.auto.ladder: codec \"quant:40\": the bits of a quantised value must be an "
            "integer from "
            "1 to 8, not \"40\""},
        BadText{"compression.auto.ladder = [\"none\", \"zip\"]",
                "a.toml:1: compression.auto.ladder: unknown codec \"zip\"; expected one of: none, fp16, bf16, "
                "quant, topk, sign, onebit, qsgd, natural, exponential, fp8, mx, fitted, daq, bounded, tah, "
                "outliers, random, columns, lowrank, atomo"},
        BadText{"compression.auto.ladder = [\"none\", \"lowrank:4,warm=yes\"]",
                "a.toml:1: compression.auto.ladder: expected codecs that keep nothing from message to message, "
                "found "
                "\"lowrank:4,warm=yes\""},
        BadText{"compression.auto.ladder = [\"fp16\", \"none\", \"fp16\"]",
                "a.toml:1: compression.auto.ladder: expected each codec once, found \"fp16\" twice"},
        BadText{"[compression]\nactivations = { codec = \"auto\", feedback = \"ef\" }",
                "a.toml:2: compression.activations.feedback: with codec \"auto\" expected none, found \"ef\""},
        BadText{
            "[compression]\ngradients.feedback = \"ef\"\n[[compression.boundaries]]\nname = "
            "\"layer1\"\ngradients.codec = \"auto\"",
            "a.toml:3: compression.boundaries[0].gradients.feedback: with codec \"auto\" expected none, found "
            "\"ef\""},
        BadText{"[compression]\nreuse_indices = true\ngradients = { codec = \"auto\" }",
                "a.toml:2: compression.reuse_indices: with codec \"auto\" expected false, found true"},
        BadText{"compression.auto.network = \"hom\"\n[[networks]]\nname = \"home\"\nbandwidth = \"1Mbps\"",
                "a.toml:1: compression.auto.network: expected one of networks, which are home; found \"hom\" "
                "(did you "
                "mean \"home\"?)"},
        BadText{"compression.auto.network = \"home\"",
                "a.toml:1: compression.auto.network: expected one of networks, which are none; found \"home\""},
        BadText{"networks = [{ bandwidth = \"1Gbps\" }]", "a.toml:1: networks[0]: expected a name, found none"},
        BadText{"[[networks]]\nname = \"a\"\n[[networks]]\nname = \"a\"",
                "a.toml:4: networks[1].name: expected each name once, found \"a\" twice"},
        BadText{"[[networks]]\nname = \"a\"\nbandwidth = \"900bps\"",
                "a.toml:3: networks[0].bandwidth: expected a rate of at least 1kbps such as 100Mbps, or "
                "unlimited, found "
                "\"900bps\""},
        BadText{"[[networks]]\nname = \"a\"\nbandwidth = \"1Mbps,5ms\"",
                "a.toml:3: networks[0].bandwidth: expected a rate of at least 1kbps such as 100Mbps, or "
                "unlimited, found "
                "\"1Mbps,5ms\""},
        BadText{"[[networks]]\nname = \"a\"\nlatency = \"5\"",
                "a.toml:3: networks[0].latency: expected a time such as 10m or 90s, or 0s, found \"5\""},
        BadText{"[[networks]]\nname = \"a\"\ncompute = 0",
                "a.toml:3: networks[0].compute: expected a number > 0, found 0.0"},
        BadText{"[[networks]]\nname = \"a\"\nstage_seconds = [1, 2]",
                "a.toml:3: networks[0].stage_seconds: expected one for each of 4 stages, found 2"},
        BadText{"[[networks]]\nname = \"a\"\nstage_seconds = [1, 2, 3, -4]",
                "a.toml:3: networks[0].stage_seconds: expected numbers above 0, found -4.0"},
        BadText{"[[networks]]\nname = \"a\"\nbandwith = \"1Mbps\"",
                "a.toml:3: unknown key \"networks[0].bandwith\" (did you mean \"networks[0].bandwidth\"?)"},
        BadText{"[[networks]]\nname = \"a\"\nlatency = \"5ms\"",
                "a.toml:1: networks[0].bandwidth: expected a rate such as 200Mbps, or unlimited, for network "
                "\"a\", found none"},
        BadText{"networks = [{ name = \"a\", bandwidth = \"unlimited\" }]\npipeline.replicas = 2",
                "a.toml:2: pipeline.replicas: with networks expected 1, because only the step of one pipeline "
                "can be "
                "simulated; found 2"},
        BadText{"compression.boundaries = 3",
                "a.toml:1: compression.boundaries: expected an array of tables, found 3"},
        BadText{"compression.boundaries = [\"layer1\"]",
                "a.toml:1: compression.boundaries: expected an array of tables, found \"layer1\" in it"},
        BadText{"[compression]\nboundaries = [{ name = \"layer1\", gradients = { codec = \"fp16\" } },\n"
                "{ name = \"layer2\", activation = { codec = \"fp16\" } }]",
                "a.toml:3: unknown key \"compression.boundaries[1].activation\" (did you mean "
                "\"compression.boundaries[1].activations\"?)"},
        BadText{
            "[[compression.boundaries]]\nname = \"layer1\"\n[[compression.boundaries]]\nname = \"layer2\"\n"
            "gradients.codec = \"quant:9\"",
            "a.toml:5: compression.boundaries[1].gradients.codec: codec \"quant:9\": the bits of a quantised "
            "value must be an integer from 1 to 8, not \"9\""},
        BadText{"[[compression.boundaries]]\nname = 3",
                "a.toml:2: compression.boundaries[0].name: expected a string, found 3"},
        BadText{
            "[[compression.boundaries]]\nactivations.codec = \"fp16\"",
            "a.toml:1: compression.boundaries[0].name: expected one of model.cuts, which are layer1, layer2, "
            "layer3; found \"\""},
        BadText{"[[compression.boundaries]]\nactivations = \"fp16\"",
                "a.toml:2: compression.boundaries[0].activations: expected a table, found \"fp16\" (did you "
                "mean \"compression.boundaries[0].activations.codec\"?)"},
        BadText{"model.cuts = []\n[[compression.boundaries]]\nname = \"layer1\"",
                "a.toml:3: compression.boundaries[0].name: expected one of model.cuts, which are none; found "
                "\"layer1\""},
        BadText{
            "pipeline.micro_batches = 2\n[[compression.boundaries]]\nname = \"layer1\"\n"
            "activations.codec = \"quant:4\"\nactivations.feedback = \"ef\"",
            "a.toml:4: compression.boundaries[0].activations: feedback \"ef\" with 2 micro-batches expects a "
            "codec of scope sample, found \"quant:4\""},
        BadText{
            "[compression]\nreuse_indices = true\nactivations.codec = \"topk:0.1\"\n"
            "gradients.codec = \"topk:0.1\"\n[[compression.boundaries]]\nname = \"layer1\"\n"
            "activations.codec = \"topk:0.2\"",
            "a.toml:5: compression.boundaries[0].gradients.codec: with reuse_indices expected a codec that "
            "selects the same share and scope as the activations', by the same operator, found \"topk:0.1\""},
        BadText{"compression.evaluation = \"\"",
                "a.toml:1: compression.evaluation: expected one of: plain, frozen, live; found \"\""},
        BadText{"model.cuts = [\"layer1\", \"\"]",
                "a.toml:1: model.cuts: expected names of layers, found an empty one"},
        BadText{"model.cuts = [\"layer1\", \"layer2\", \"layer1\"]",
                "a.toml:1: model.cuts: expected each layer once, found \"layer1\" twice"},
        BadText{"name = \"a/b\"",
                "a.toml:1: name: expected the name of a folder, 1 to 100 letters, digits and any of ._+- that "
                "begin "
                "with no . or -, found \"a/b\""},
        BadText{"name = \"..\"",
                "a.toml:1: name: expected the name of a folder, 1 to 100 letters, digits and any of ._+- that "
                "begin "
                "with no . or -, found \"..\""},
        BadText{"name = \"\"",
                "a.toml:1: name: expected the name of a folder, 1 to 100 letters, digits and any of ._+- that "
                "begin "
                "with no . or -, found \"\""},
        BadText{"[compression]\ngradients = { codec = \"none:3\" }",
                "a.toml:2: compression.gradients.codec: codec \"none:3\": none takes nothing behind a colon"},
        BadText{"[compression]\ngradients = { feedback = \"non\" }",
                "a.toml:2: compression.gradients.feedback: unknown feedback \"non\" (did you mean \"none\"?); "
                "expected "
                "one of: none, ef, ef21, ef-mixed, aq-sgd, diana, ef21-sgdm, marina"},
        BadText{"[compression]\nreuse_indices = 1",
                "a.toml:2: compression.reuse_indices: expected true or false, found 1"},
        BadText{
            "[compression]\nstore = { format = \"fp16\" }",
            "a.toml:2: compression.store.format: expected one of: fp32, bf16, quant:8, quant:4, quant:2; found "
            "\"fp16\" (did you mean \"fp32\"?)"},
        BadText{"[compression]\nactivations = { codec = \"quant:4\", feedback = \"ef21\" }\n[pipeline]\n"
                "micro_batches = 2",
                "a.toml:2: compression.activations: feedback \"ef21\" with 2 micro-batches expects a codec of "
                "scope "
                "sample, found \"quant:4\""},
        BadText{"[compression.gradients]\nfeedback = \"aq-sgd\"",
                "a.toml:2: compression.gradients.feedback: expected a scheme for gradients, found \"aq-sgd\", "
                "which "
                "keeps activations"}));

INSTANTIATE_TEST_SUITE_P(
    Keys, BadFile,
    testing::Values(
        BadText{"[train]\n\nepoch = 3",
                "a.toml:3: unknown key \"train.epoch\" (did you mean \"train.epochs\"?)"},
        BadText{"[trian]\nepochs = 3", "a.toml:1: unknown key \"trian\" (did you mean \"train\"?)"},
        BadText{"[train.optimizer]\nlearning_rate = 3",
                "a.toml:2: unknown key \"train.optimizer.learning_rate\""},
        BadText{"codec = \"topk:0.1\"",
                "a.toml:1: unknown key \"codec\" (did you mean \"compression.activations.codec\"?)"},
        BadText{"[compression]\nfeedback = \"ef\"",
                "a.toml:2: unknown key \"compression.feedback\" (did you mean "
                "\"compression.activations.feedback\"?)"},
        BadText{"epochs = 3", "a.toml:1: unknown key \"epochs\" (did you mean \"train.epochs\"?)"},
        BadText{"\"train.epochs\" = 3",
                "a.toml:1: unknown key \"train.epochs\": in quotation marks its dots are a part of a name"},
        BadText{"[compression]\nactivation = { codec = \"none\" }",
                "a.toml:2: unknown key \"compression.activation\" (did you mean \"compression.activations\"?)"},
        BadText{"[compression]\nactivations = { codecs = \"none\" }",
                "a.toml:2: unknown key \"compression.activations.codecs\" (did you mean "
                "\"compression.activations.codec\"?)"},
        BadText{"\"\" = 3", "a.toml:1: unknown key \"\""}, BadText{"zzz = 3", "a.toml:1: unknown key \"zzz\""},
        BadText{"\"a\\nb\" = 3", "a.toml:1: unknown key \"a\\u000ab\""},
        BadText{"seeds = [1]", "a.toml:1: unknown key \"seeds\"; a file with it is for strait sweep"},
        BadText{"base = \"b.toml\"", "a.toml:1: base: only a configuration in a file can have one"}));

INSTANTIATE_TEST_SUITE_P(
    Kinds, BadFile,
    testing::Values(
        BadText{"train.optimizer.betas = [0.9, 0.999]",
                "a.toml:1: unknown key \"train.optimizer.betas\"; it is one with train.optimizer.kind = "
                "\"adamw\" or \"adam\""},
        BadText{"[train.optimizer]\nkind = \"adamw\"\nmomentum = 0.9",
                "a.toml:3: unknown key \"train.optimizer.momentum\"; it is one with train.optimizer.kind = "
                "\"sgd\""},
        BadText{"train.schedule.warmup_steps = 1",
                "a.toml:1: unknown key \"train.schedule.warmup_steps\"; it is one with train.schedule.kind = "
                "\"linear\""},
        BadText{"train.schedule = { kind = \"linear\", t_max = 3 }",
                "a.toml:1: unknown key \"train.schedule.t_max\"; it is one with train.schedule.kind = "
                "\"cosine\" or \"constant\""},
        BadText{"model.heads = 2",
                "a.toml:1: unknown key \"model.heads\"; it is one with model.kind = \"gpt2\" or \"llama\""},
        BadText{"data.block = 8",
                "a.toml:1: unknown key \"data.block\"; it is one with data.kind = \"wikitext2\" or \"text\""},
        BadText{
            "model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\ndata.train_file = \"a.txt\"",
            "a.toml:3: unknown key \"data.train_file\"; it is one with data.kind = \"tensors\" or \"text\""},
        BadText{"model.kind = \"gpt2\"",
                "a.toml:1: data.kind: expected \"wikitext2\" or \"text\" for model.kind \"gpt2\", found "
                "\"cifar10\""},
        BadText{
            "[data]\nkind = \"text\"",
            "a.toml:2: data.kind: expected \"cifar10\", \"shapes\", \"images\" or \"tensors\" for model.kind "
            "\"resnet18\", found \"text\""},
        BadText{"model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\nmodel.heads = 5",
                "a.toml:3: model.heads: expected a divisor of model.width, which is 768, found 5"},
        BadText{"model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\nmodel.context = 512",
                "a.toml:3: model.context: expected at least 1024, the tokens of a sample, found 512"},
        BadText{"model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\ndata.block = 1025",
                "a.toml:1: model.context: expected at least 1025, the tokens of a sample, found 1024"},
        BadText{"model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\ndata.train_range = [0.5, 0.5]",
                "a.toml:3: data.train_range: expected two rising numbers from 0 to 1, found [0.5, 0.5]"},
        BadText{"model.kind = \"gpt2\"\ndata.kind = \"wikitext2\"\ndata.train_range = [0.5, \"x\"]",
                "a.toml:3: data.train_range: expected an array of numbers, found \"x\" in it"},
        BadText{"train.optimizer.kind = \"adamw\"\ntrain.optimizer.betas = [0.9, 1]",
                "a.toml:2: train.optimizer.betas: expected two numbers >= 0 and < 1, found [0.9, 1.0]"},
        BadText{"train.optimizer.kind = \"adamw\"\ntrain.optimizer.betas = [0.9]",
                "a.toml:2: train.optimizer.betas: expected two numbers >= 0 and < 1, found [0.9]"},
        BadText{"train.accumulate = 0", "a.toml:1: train.accumulate: expected an integer >= 1, found 0"},
        BadText{"train.precision = \"fp16\"",
                "a.toml:1: train.precision: expected one of: fp32, bf16; found \"fp16\" (did you mean "
                "\"fp32\"?)"}));

TEST(BadToml, IsNamedWithItsLine) {
  const auto starts = [](const char* text, const std::string& start) {
    const auto message = complaint(text);
    EXPECT_TRUE(message.starts_with(start)) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  };
  starts("seed = 1\nseed = 2", "a.toml:2: not valid TOML: ");
  starts("[train\nepochs = 3", "a.toml:1: not valid TOML: ");
  starts("name = \"\xff\"", "a.toml:1: not valid TOML: ");
  starts("seed = 99999999999999999999", "a.toml:1: not valid TOML: ");
}

TEST(BadToml, OnlyTheDotsOfAKeyCount) {
  const std::string dots(100, '.');
  const std::vector<std::string> none = {
      "name = '" + dots + "'",        R"(name = "\")" + dots + "\"",
      "name = '''\n'" + dots + "'''", "name = \"\"\"\n\"\"\\\"" + dots + "\"\"\"",
      "seed = 1  # \"" + dots,        "\"" + dots + "\" = 1"};
  for (const auto& text : none) {
    EXPECT_THAT(complaint(text), testing::Not(testing::HasSubstr("at most"))) << text;
  }
  // A string hides no key that stands behind it.
  const std::string key = "a" + std::string(17, '.');
  for (const char* before : {"x = '=', ", R"(x = {"=".b.)", "x = [\"\"\"\n\"\"\"\", {", "x = ''\n",
                             "x = '''\n'''''\n", "x = \"\\\\\"\n", "# \"\n"}) {
    EXPECT_THAT(complaint(before + key), testing::EndsWith("expected at most 16 dots in a key")) << before;
  }
}

TEST(BadToml, DepthIsBounded) {
  std::string dots = "a";
  for (int i = 0; i < 100'000; ++i) dots += ".a";
  EXPECT_EQ(complaint("\n" + dots + " = 1"), "a.toml:2: expected at most 16 dots in a key");
  EXPECT_THAT(complaint(dots.substr(0, 33) + " = 1"), testing::StartsWith("a.toml:1: unknown key \"a\""));
  EXPECT_THROW(parse_config("", "a.toml", std::vector<std::string>{"seed={" + dots + "=1}"}), InputError);
  EXPECT_THROW(parse_config("", "a.toml", std::vector<std::string>{dots + "=1"}), InputError);
  EXPECT_THROW(parse_config("a = " + std::string(100'000, '['), "a.toml"), InputError);
}

class BadOverride : public testing::TestWithParam<BadText> {};

TEST_P(BadOverride, NamesTheFlag) {
  const std::vector<std::string> overrides = {GetParam().text};
  EXPECT_EQ(test::error_of<InputError>([&] { parse_config("", "a.toml", overrides); }), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Flags, BadOverride,
    testing::Values(
        BadText{"train.epoch=3",
                "--set train.epoch=3: unknown key \"train.epoch\" (did you mean \"train.epochs\"?)"},
        BadText{"train.epochs=many",
                "--set train.epochs=many: train.epochs: expected an integer, found \"many\""},
        BadText{"train.epochs=0", "--set train.epochs=0: train.epochs: expected an integer >= 1, found 0"},
        BadText{"train.epochs.x=1", "--set train.epochs.x=1: train.epochs: expected an integer, found a table"},
        BadText{"train=3", "--set train=3: train: expected a table, found 3"},
        BadText{"train=fast", "--set train=fast: train: expected a table, found \"fast\""},
        BadText{"compression.activations=quant:4",
                "--set compression.activations=quant:4: compression.activations: expected a table, found "
                "\"quant:4\" (did you mean \"compression.activations.codec\"?)"},
        BadText{"compression.gradients=none",
                "--set compression.gradients=none: compression.gradients: expected a table, found "
                "\"none\" (did you mean \"compression.gradients.codec\"?)"},
        BadText{"compression.replicas=fp16",
                "--set compression.replicas=fp16: compression.replicas: expected a table, found "
                "\"fp16\" (did you mean \"compression.replicas.codec\"?)"},
        BadText{"compression.gradients=4",
                "--set compression.gradients=4: compression.gradients: expected a table, found 4"},
        BadText{"train.optimizer=adam",
                "--set train.optimizer=adam: train.optimizer: expected a table, found \"adam\" (did you "
                "mean \"train.optimizer.kind\"?)"},
        BadText{"train.schedule=linear",
                "--set train.schedule=linear: train.schedule: expected a table, found \"linear\" (did you "
                "mean \"train.schedule.kind\"?)"},
        BadText{"model=gpt2",
                "--set model=gpt2: model: expected a table, found \"gpt2\" (did you mean \"model.kind\"?)"},
        BadText{"compression.boundaries=[{name=\"layer1\",activations=\"quant:4\"}]",
                "--set compression.boundaries=[{name=\"layer1\",activations=\"quant:4\"}]: "
                "compression.boundaries[0].activations: expected a table, found \"quant:4\" (did you mean "
                "\"compression.boundaries[0].activations.codec\"?)"},
        BadText{"name=3", "--set name=3: name: expected a string, found 3"},
        BadText{"model.cuts=layer1",
                "--set model.cuts=layer1: model.cuts: expected an array of strings, found \"layer1\""},
        BadText{"model.cuts=[\"layer1\"",
                "--set model.cuts=[\"layer1\": model.cuts: expected an array of strings, found "
                "\"[\\\"layer1\\\"\""},
        BadText{"compression.activations.codec=none:1",
                "--set compression.activations.codec=none:1: compression.activations.codec: codec \"none:1\": "
                "none takes "
                "nothing behind a colon"},
        BadText{"train.epochs", "--set train.epochs: expected key=value, for example train.epochs=3"},
        BadText{"=3", "--set =3: expected key=value, for example train.epochs=3"},
        BadText{"train..epochs=3", "--set train..epochs=3: expected key=value, for example train.epochs=3"},
        BadText{"base=b.toml", "--set base=b.toml: base: a file can have a base, a flag cannot set one"},
        BadText{"data.root=\xff", "--set data.root=\xff: data.root: expected a path in UTF-8 without NUL"}));

TEST(BadBase, NamesTheFileThatIsWrong) {
  const test::TempDir dir;
  const auto message = [&](const std::string& name) {
    auto text = test::error_of<InputError>([&] { load_config(dir / name); });
    const std::string folder = dir.path().string() + "/";
    for (size_t at; (at = text.find(folder)) != std::string::npos;) text.erase(at, folder.size());
    return text;
  };
  test::write_file(dir / "bad.toml", "[train]\nepochs = 0\n");
  test::write_file(dir / "over_bad.toml", "base = \"bad.toml\"\n[train]\nthreads = 1\n");
  EXPECT_EQ(message("over_bad.toml"), "bad.toml:2: train.epochs: expected an integer >= 1, found 0");

  test::write_file(dir / "self.toml", "seed = 1\nbase = \"self.toml\"\n");
  EXPECT_EQ(message("self.toml"), "self.toml:2: base: \"self.toml\" leads back to itself");

  test::write_file(dir / "one.toml", "base = \"two.toml\"\n");
  test::write_file(dir / "two.toml", "base = \"./one.toml\"\n");
  EXPECT_EQ(message("one.toml"), "two.toml:1: base: \"./one.toml\" leads back to itself");

  test::write_file(dir / "lost.toml", "base = \"nowhere.toml\"\n");
  EXPECT_EQ(message("lost.toml"), "lost.toml:1: base: there is no file nowhere.toml");

  std::filesystem::create_symlink("loop", dir / "loop");
  test::write_file(dir / "circle.toml", "base = \"loop\"\n");
  EXPECT_EQ(message("circle.toml"), "loop: cannot be read: Too many levels of symbolic links");

  test::write_file(dir / "number.toml", "base = 3\n");
  EXPECT_EQ(message("number.toml"), "number.toml:1: base: expected the name of a file, found 3");
  test::write_file(dir / "cut.toml", "base = \"bad.toml\\u0000x\"\n");
  EXPECT_EQ(message("cut.toml"), "cut.toml:1: base: expected the name of a file, found \"bad.toml\\u0000x\"");

  EXPECT_EQ(message("missing.toml"), "missing.toml: cannot be opened: No such file or directory");
  std::filesystem::create_directory(dir / "folder.toml");
  EXPECT_EQ(message("folder.toml"), "folder.toml: expected a file, found a folder");
  test::write_file(dir / "huge.toml", std::string(3 << 20, '\n'));
  EXPECT_EQ(message("huge.toml"), "huge.toml: has 3145728 bytes, expected at most 1048576");
  ASSERT_EQ(mkfifo((dir / "pipe.toml").c_str(), 0600), 0);
  EXPECT_EQ(message("pipe.toml"), "pipe.toml: expected a file, found a pipe");
}

}  // namespace
}  // namespace strait
