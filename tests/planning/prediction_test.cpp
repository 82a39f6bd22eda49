#include "strait/planning/prediction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "tests/planning/config_with.h"
#include "tests/support/errors.h"
#include "tests/support/nested.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using test::config_with;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::vector<Candidate>& candidates) {
  std::vector<std::string> names;
  for (const auto& candidate : candidates) names.push_back((candidate.own ? "own " : "") + candidate.name);
  return names;
}

TEST(Candidates, TheConfigurationsOwnIsOneOfThemOrComesLast) {
  EXPECT_THAT(names_of(candidates_for(config_with({}))),
              ElementsAre("own none", "fp16", "bf16", "quant:8", "quant:4/quant:8", "topk:0.1",
                          "topk:0.1,values=quant:8"));
  const auto other = candidates_for(
      config_with({"compression.activations.codec=topk:0.2", "compression.activations.feedback=ef21",
                   "compression.gradients.codec=quant:2"}));
  EXPECT_EQ(names_of(other).back(), "own topk:0.2+ef21/quant:2");
  EXPECT_EQ(other.size(), 8U);
  EXPECT_EQ(names_of(candidates_for(config_with(
                         {"compression.activations.codec=fp16", "compression.gradients.codec=fp16",
                          R"(compression.boundaries=[{name="layer2", gradients={codec="quant:8"}}])"})))
                .back(),
            "own fp16 layer2:fp16/quant:8");
}

TEST(MicroBatchesOf, CountsThoseThatABatchFills) {
  const auto parts = [](int64_t batch, int64_t micro_batches) {
    const auto found = micro_batches_of(config_with(
        {fmt::format("data.batch_size={}", batch), fmt::format("pipeline.micro_batches={}", micro_batches)}));
    return std::pair(found.count, found.rows);
  };
  EXPECT_EQ(parts(100, 4), std::pair(4, int64_t{25}));
  EXPECT_EQ(parts(10, 4), std::pair(4, int64_t{3}));
  EXPECT_EQ(parts(5, 4), std::pair(3, int64_t{2}));
}

/// Stages of 1 s forward and 2 s back; "none" sends 100 bytes, "small" 10 but takes 1 s to encode.
Measurement invented(size_t stages) {
  Measurement measurement{.stages = std::vector<StageSeconds>(stages, {"stage", 1, 2}), .candidates = {}};
  const auto add = [&](const char* name, const MessageCost& cost) {
    const std::vector<MessageCost> messages(stages - 1, cost);
    measurement.candidates.push_back(
        {.candidate = {.name = name, .compression = {}}, .activation = messages, .gradient = messages});
  };
  add("none", {.bytes = 100});
  add("small", {.bytes = 10, .encode_seconds = 1});
  measurement.candidates.back().candidate.own = true;
  return measurement;
}

TEST(Predictor, FindsTheFastestCandidateOfALink) {
  const Predictor predictor(config_with({}), 4, CodecPlace::own_threads);
  auto measurement = invented(4);
  const auto slow = predictor.predict(measurement, {.bytes_per_second = 10});
  // 4 stages of 3 s and 6 messages of 10 s, or of 1 s behind 1 s to encode.
  EXPECT_DOUBLE_EQ(slow.none().seconds, 72);
  EXPECT_DOUBLE_EQ(slow.fastest().seconds, 24);
  EXPECT_EQ(slow.fastest().candidate, "small");
  EXPECT_TRUE(slow.fastest().own);
  EXPECT_TRUE(slow.compression_pays());
  EXPECT_EQ(slow.none().shares.largest(), "wire");
  EXPECT_DOUBLE_EQ(predictor.ideal_seconds(measurement.stages, measurement.own(), {.bytes_per_second = 10}),
                   18);
  const auto fast = predictor.predict(measurement, {});
  EXPECT_DOUBLE_EQ(fast.none().seconds, 12);
  EXPECT_EQ(fast.best, 0U);
  EXPECT_FALSE(fast.compression_pays());
}

TEST(Predictor, BoundariesMayHaveLinksOfTheirOwn) {
  const Predictor predictor(config_with({}), 4, CodecPlace::own_threads);
  auto measurement = invented(4);
  std::vector<BoundaryLink> links(3);
  links[1].gradients.bytes_per_second = 10;
  const auto found = predictor.predict(measurement, {}, links);
  EXPECT_DOUBLE_EQ(found.none().seconds, 12 + 10) << "the one message that does not cross at once";
  EXPECT_EQ(found.boundary_links.size(), 3U);
  EXPECT_DOUBLE_EQ(predictor.ideal_seconds(measurement.stages, measurement.own(), {}, links), 12 + 1);
}

TEST(Predictor, AStreamHasNoBubble) {
  for (const char* schedule : {"pipedream", "xpipe"}) {
    const auto config = config_with(
        {fmt::format("pipeline.schedule={}", schedule), "pipeline.micro_batches=3", "data.batch_size=3"});
    const Predictor predictor(config, 4, CodecPlace::own_threads);
    auto measurement = invented(4);
    const auto even = predictor.predict(measurement, {});
    EXPECT_DOUBLE_EQ(even.none().seconds, 3 * 3) << "three micro-batches of 3 s";
    EXPECT_DOUBLE_EQ(even.none().shares.compute, 3 * 3);
    EXPECT_EQ(even.none().shares.bubble, 0);
    measurement.stages[1] = {"slow", 2, 3};
    EXPECT_DOUBLE_EQ(predictor.predict(measurement, {}).none().seconds, 3 * 5) << "the slowest stage's";
  }
  // Two stages, and 10 s for a message: the first stage has two micro-batches under way, and each is back after
  // 1 + 10 + 1 + 2 + 10 + 2 s.
  const auto config =
      config_with({"pipeline.schedule=pipedream", "pipeline.micro_batches=3", "data.batch_size=3"});
  const auto slow =
      Predictor(config, 2, CodecPlace::own_threads).predict(invented(2), {.bytes_per_second = 10}).none();
  EXPECT_DOUBLE_EQ(slow.seconds, 3 * 26.0 / 2);
  EXPECT_EQ(slow.shares.largest(), "wire");
  EXPECT_NEAR(slow.shares.total(), slow.seconds, 1e-9);
}

TEST(Predictor, CountsTheVersionsOfWeights) {
  const auto versions = [](const std::string& schedule) {
    return Predictor(config_with({"pipeline.schedule=" + schedule, "pipeline.micro_batches=8"}), 4,
                     CodecPlace::own_threads)
        .weight_versions();
  };
  EXPECT_THAT(versions("1f1b"), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(versions("pipedream"), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(versions("xpipe"), ElementsAre(2, 2, 2, 1));
}

TEST(Predictor, TwoPercentAreNotWorthIt) {
  LinkPrediction prediction;
  prediction.steps.resize(2);
  prediction.best = 1;
  prediction.steps[1].seconds = 1;
  prediction.steps[0].seconds = 1.019;
  EXPECT_FALSE(prediction.compression_pays());
  prediction.steps[0].seconds = 1.021;
  EXPECT_TRUE(prediction.compression_pays());
}

TEST(Predictor, SizesThatDoNotFitAreRefused) {
  const auto config = config_with({"pipeline.schedule=interleaved", "pipeline.stages_per_rank=2"});
  EXPECT_EQ(Predictor(config, 8, CodecPlace::own_threads).plan().ranks.size(), 4U);
  EXPECT_THAT(test::error_of<InputError>([&] { Predictor(config, 5, CodecPlace::own_threads); }),
              AllOf(HasSubstr("--stages"), HasSubstr("divides the 5 stages")));
  const auto many = config_with({"data.batch_size=100000", "pipeline.micro_batches=100000"});
  EXPECT_THAT(test::error_of<InputError>([&] { Predictor(many, 400, CodecPlace::own_threads); }),
              HasSubstr("--stages: expected at most 20 stages with 100000 micro-batches, found 400"));
  const auto stream =
      config_with({"pipeline.schedule=pipedream", "data.batch_size=8", "pipeline.micro_batches=6"});
  EXPECT_THAT(test::error_of<InputError>([&] { Predictor(stream, 600, CodecPlace::own_threads); }),
              HasSubstr("--stages: expected at most 591 stages with 4 micro-batches, found 600"));
}

TEST(Stretched, KeepsTheWorkAndTheMeanMessage) {
  Measurement three = invented(3);
  three.stages[0] = {"first", 4, 5};
  three.candidates[0].activation = {{10, 1, 2}, {30, 3, 4}};
  const Measurement six = stretched(three, 6);
  ASSERT_EQ(six.stages.size(), 6U);
  EXPECT_DOUBLE_EQ(six.stages[5].forward, 1);
  EXPECT_DOUBLE_EQ(six.stages[5].backward, 1.5);
  ASSERT_EQ(six.candidates[0].activation.size(), 5U);
  EXPECT_DOUBLE_EQ(six.candidates[0].activation[4].bytes, 20);
  EXPECT_DOUBLE_EQ(six.candidates[0].activation[4].encode_seconds, 2);
  EXPECT_DOUBLE_EQ(six.candidates[0].activation[4].decode_seconds, 3);
  EXPECT_TRUE(stretched(invented(1), 1).candidates[0].activation.empty());
  EXPECT_THAT(test::error_of<InputError>([] { stretched(invented(1), 2); }),
              HasSubstr("--stages: expected model.cuts"));
}

Config tiny(const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all = {"model.width=2",           "data.kind=shapes",  "data.train_limit=8",
                                  "data.test_limit=1",       "data.batch_size=8", "train.threads=1",
                                  "pipeline.micro_batches=2"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return config_with(all);
}

TEST(Measure, TimesStagesAndCountsTheBytesOfMessages) {
  const Config config =
      tiny({"compression.activations.codec=quant:4,scope=sample", "compression.activations.feedback=aq-sgd"});
  auto measurement = measure(config, candidates_for(config));
  ASSERT_EQ(measurement.stages.size(), 4U);
  for (const auto& stage : measurement.stages) {
    EXPECT_THAT(stage.name, HasSubstr(".."));
    EXPECT_GT(stage.forward, 0);
    EXPECT_GT(stage.backward, 0);
  }
  const auto& none = measurement.candidates[0];
  // Four samples of 2 x 32 x 32, 4 x 16 x 16 and 8 x 8 x 8 floats, and a header of 64 bytes.
  const double bytes[] = {4 * 2048 * 4 + 64, 4 * 1024 * 4 + 64, 4 * 512 * 4 + 64};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(none.activation[i].bytes, bytes[i]);
    EXPECT_EQ(none.gradient[i].bytes, bytes[i]);
    EXPECT_GT(none.activation[i].encode_seconds, 0);
    EXPECT_GT(none.gradient[i].decode_seconds, 0);
  }
  EXPECT_LT(none.ratio, 1);
  EXPECT_GT(none.ratio, 0.98);
  const auto& halves = measurement.candidates[1];
  EXPECT_EQ(halves.activation[0].bytes, 4 * 2048 * 2 + 64);
  // The samples' first messages are whole; it is the compressed ones after them that count.
  EXPECT_LT(measurement.own().activation[0].bytes, 4 * 2048 + 1000);
  EXPECT_EQ(measurement.own().gradient[0].bytes, bytes[0]);
}

TEST(Measure, ABoundaryOfItsOwnKindHasItsOwnMessages) {
  const Config config = tiny({"compression.activations.codec=fp16",
                              R"(compression.boundaries=[{name="layer2", activations={codec="quant:8"}}])"});
  auto measurement = measure(config, std::vector{candidates_for(config).back()});
  const auto& own = measurement.own();
  EXPECT_EQ(own.activation[0].bytes, 4 * 2048 * 2 + 64);
  EXPECT_EQ(own.activation[1].bytes, 4 * 1024 + 8 + 64);
  EXPECT_EQ(own.activation[2].bytes, 4 * 512 * 2 + 64);
  EXPECT_EQ(own.gradient[1].bytes, 4 * 1024 * 4 + 64);
}

TEST(Measure, ADataSetBelowAMicroBatchIsRefused) {
  const Config config = tiny({"data.train_limit=3"});
  EXPECT_THAT(test::error_of<InputError>([&] { measure(config, candidates_for(config)); }),
              HasSubstr("data.train_limit: a micro-batch has 4 samples, found 3"));
}

constexpr const char* kEpoch =
    R"({"epoch":0,"steps":2,"train_loss":1,"train_accuracy":10,"lr":0.1,"seconds":4,"evaluation_seconds":1,)"
    R"("data_wait_seconds":0,"test":{"off":{"loss":1,"accuracy":10},"on":{"loss":1,"accuracy":10},"samples":5},)"
    R"("samples_per_second":50,"boundaries":[{"name":"layer1","activations":{"messages":4,)"
    R"("raw_bytes":800,"wire_bytes":400,"encode_seconds":2,"decode_seconds":8},"gradients":{"messages":4,)"
    R"("raw_bytes":800,"wire_bytes":40,"encode_seconds":1,"decode_seconds":2}}],"stages":[{"name":"a",)"
    R"("forward_seconds":0.5,"backward_seconds":1},{"name":"b","forward_seconds":2,"backward_seconds":3}]})";

class ReadMeasurement : public testing::Test {
 protected:
  std::string complaint_about(const std::string& metrics) {
    test::write_file(dir_ / "metrics.jsonl", metrics);
    return test::error_of<InputError>([&] { read_measurement(config_, dir_.path()); });
  }

  test::TempDir dir_;
  Config config_ = tiny({"model.cuts=[\"layer1\"]"});
};

TEST_F(ReadMeasurement, TakesMeansOfTheLastWholeEpoch) {
  test::write_file(dir_ / "metrics.jsonl", std::string("{}\n") + kEpoch + "\n{\"epoch\":1,");
  const auto run = read_measurement(config_, dir_.path());
  EXPECT_EQ(run.samples_per_second, 50);
  ASSERT_EQ(run.stages.size(), 2U);
  EXPECT_EQ(run.stages[1].name, "b");
  EXPECT_EQ(run.stages[1].backward, 3);
  EXPECT_EQ(run.own.candidate.name, "none");
  EXPECT_EQ(run.own.activation[0].bytes, 100);
  EXPECT_EQ(run.own.activation[0].decode_seconds, 2);
  EXPECT_EQ(run.own.gradient[0].bytes, 10);
  EXPECT_EQ(run.own.gradient[0].encode_seconds, 0.25);
  EXPECT_DOUBLE_EQ(run.own.ratio, 1600.0 / 440);
}

TEST_F(ReadMeasurement, NamesTheFileThatIsWrong) {
  EXPECT_THAT(test::error_of<InputError>([&] { read_measurement(config_, dir_ / "none"); }),
              HasSubstr("none/metrics.jsonl: cannot be opened"));
  EXPECT_THAT(complaint_about(""), HasSubstr("metrics.jsonl: expected at least one epoch"));
  std::string older(kEpoch);
  older.replace(older.find("stages"), 6, "others");
  EXPECT_THAT(complaint_about(older + "\n"), HasSubstr("expected \"stages\""));
  EXPECT_THAT(complaint_about("{\"epoch\":0}\n"), HasSubstr("metrics.jsonl:1: train_loss: missing"));
  EXPECT_THAT(complaint_about("[1\n"), HasSubstr("metrics.jsonl:1: is not JSON (at byte 3)"));
  EXPECT_THAT(complaint_about(test::nested(300'000) + "\n"),
              HasSubstr("metrics.jsonl:1: is nested deeper than"));
  config_ = tiny();
  EXPECT_THAT(complaint_about(std::string(kEpoch) + "\n"), HasSubstr("expected an epoch of 4 stages"));
}

}  // namespace
}  // namespace strait
