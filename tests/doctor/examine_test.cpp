#include "strait/doctor/examine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "strait/base/host.h"
#include "strait/doctor/advice.h"
#include "strait/doctor/rank_facts.h"
#include "tests/transport/meetings.h"

namespace strait {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Config config_with(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), {"model.width=2", "data.kind=shapes", "data.train_limit=8",
                                       "data.test_limit=1", "data.batch_size=8", "train.threads=1"});
  return parse_config("", "empty.toml", overrides);
}

std::vector<std::string> texts_of(const std::vector<BoundaryPlace>& places) {
  std::vector<std::string> texts;
  for (const auto& place : places) {
    texts.push_back(fmt::format("{} {} {}-{}", place.replica, place.name, place.before, place.behind));
  }
  return texts;
}

std::vector<std::string> texts_of(const std::vector<RankPair>& pairs) {
  std::vector<std::string> texts;
  for (const auto& pair : pairs) texts.push_back(fmt::format("{}-{}", pair.low, pair.high));
  return texts;
}

TEST(Places, OfStagesThatHaveAProcessEach) {
  const auto config = config_with({});
  EXPECT_THAT(texts_of(boundary_places(config, 4)),
              ElementsAre("0 layer1 0-1", "0 layer2 1-2", "0 layer3 2-3"));
  EXPECT_THAT(texts_of(busy_pairs(config, 4)), ElementsAre("0-1", "1-2", "2-3"));
  EXPECT_THAT(stages_of_rank(config, 2, 4), ElementsAre(2));
}

TEST(Places, OfInterleavedStages) {
  const auto config = config_with({"pipeline.schedule=interleaved", "pipeline.stages_per_rank=2"});
  EXPECT_THAT(texts_of(boundary_places(config, 2)),
              ElementsAre("0 layer1 0-1", "0 layer2 1-0", "0 layer3 0-1"));
  EXPECT_THAT(texts_of(busy_pairs(config, 2)), ElementsAre("0-1"));
  EXPECT_THAT(stages_of_rank(config, 1, 2), ElementsAre(1, 3));
}

TEST(Places, OfReplicas) {
  const auto config = config_with({"pipeline.replicas=2", R"(model.cuts=["layer2"])"});
  EXPECT_THAT(texts_of(boundary_places(config, 4)), ElementsAre("0 layer2 0-1", "1 layer2 2-3"));
  EXPECT_THAT(texts_of(busy_pairs(config, 4)), ElementsAre("0-1", "0-2", "1-3", "2-3"));
  EXPECT_THAT(stages_of_rank(config, 3, 4), ElementsAre(1));
  EXPECT_THAT(texts_of(boundary_places(config, 2)), ElementsAre("0 layer2 0-0", "1 layer2 1-1"));
  EXPECT_THAT(texts_of(busy_pairs(config, 2)), ElementsAre("0-1"));
}

class Examine : public testing::TestWithParam<test::Meeting> {};

TEST_P(Examine, EveryRankFindsOutTheSame) {
  const auto config = config_with({"pipeline.replicas=2", R"(model.cuts=["layer2"])"});
  std::mutex mutex;
  std::vector<Diagnosis> all(4);
  std::vector<std::string> measured;
  const auto errors = GetParam().run(4, std::chrono::seconds(20), [&](Group& group) {
    RankFacts facts{.rank = group.rank(),
                    .host = "node",
                    .processor = "a processor",
                    .cores = 1 + group.rank(),
                    .free_memory = uint64_t{1} << 40,
                    .folder = "runs",
                    .free_disk = uint64_t{1} << 40,
                    .code_version = "1",
                    .library_version = "2",
                    .settings = {{"seed", "0"}}};
    auto found = examine(group, config, facts, 0.05, [&](const Diagnosis& so_far, const PairReport& pair) {
      if (group.rank() == 0) measured.push_back(so_far.use_of(pair.ranks));
    });
    const std::scoped_lock lock(mutex);
    all[static_cast<size_t>(group.rank())] = std::move(found);
  });
  ASSERT_THAT(errors, Each(IsEmpty()));
  EXPECT_THAT(measured, ElementsAre("boundary layer2", "gradients of replicas", "gradients of replicas",
                                    "boundary layer2"));
  const Route route = GetParam().name == "Sockets" ? Route::local : Route::direct;
  for (const auto& found : all) {
    EXPECT_THAT(texts_of(found.boundaries), ElementsAre("0 layer2 0-1", "1 layer2 2-3"));
    ASSERT_EQ(found.ranks.size(), 4U);
    EXPECT_EQ(found.ranks[3].cores, 4);
    for (const auto& facts : found.ranks) EXPECT_LT(std::abs(facts.clock_ahead), 0.5) << "it is one clock";
    for (const auto& facts : found.ranks) EXPECT_NE(facts.address, "");
    ASSERT_EQ(found.pairs.size(), 6U);
    for (const auto& pair : found.pairs) {
      EXPECT_EQ(pair.route, route);
      const bool is_busy = pair.ranks.low + pair.ranks.high != 3;  // all but 0-3 and 1-2
      ASSERT_EQ(pair.speed.has_value(), is_busy);
      if (!is_busy) continue;
      EXPECT_GT(pair.speed->up, 1e5);
      EXPECT_GT(pair.speed->down, 1e5);
      EXPECT_GT(pair.speed->latency_seconds, 0);
      EXPECT_LT(pair.speed->latency_seconds, 1);
      EXPECT_EQ(pair.speed->up, all[0].find(pair.ranks)->speed->up);
    }
  }
}

std::vector<test::Meeting> meetings_of_tcp() {
  auto all = test::meetings();
  std::erase_if(
      all, [](const test::Meeting& meeting) { return meeting.name != "Sockets" && meeting.name != "Tls"; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(Meetings, Examine, testing::ValuesIn(meetings_of_tcp()),
                         [](const auto& info) { return info.param.name; });

TEST(Facts, CountNoMoreCheckpointsThanARunMakes) {
  const auto checkpoints = [](std::vector<std::string> overrides) {
    const auto facts = facts_of_process(config_with(std::move(overrides)), 0, {0, 1, 2, 3}, ".", 1);
    return facts.checkpoint_bytes / facts.weight_bytes;
  };
  const std::string all = "checkpoint.keep=2147483647";
  EXPECT_EQ(checkpoints({"train.epochs=1"}), 1U);
  EXPECT_EQ(checkpoints({"train.epochs=9", "checkpoint.keep=3"}), 4U);
  EXPECT_EQ(checkpoints({"train.epochs=9", all}), 9U);
  EXPECT_EQ(checkpoints({"train.epochs=9", all, "checkpoint.every_epochs=2"}), 5U);
  EXPECT_EQ(checkpoints({"train.epochs=9", all, "checkpoint.every_epochs=0"}), 1U);
  const std::string ten_steps = "data.train_limit=80";
  EXPECT_EQ(checkpoints({ten_steps, "train.epochs=3", all, "checkpoint.every_steps=2"}), 15U);
  EXPECT_EQ(checkpoints({ten_steps, "train.epochs=3", all, "checkpoint.every_steps=20"}), 3U) << "one an epoch";
  EXPECT_EQ(checkpoints({ten_steps, "train.epochs=3", "checkpoint.keep=4", "checkpoint.every_steps=1"}), 5U);
}

TEST(Facts, AreWhatAProcessKnowsOfItself) {
  const auto config = config_with({"train.epochs=3"});
  const auto facts = facts_of_process(config, 1, {0, 1, 2, 3}, "/not/there/yet", 1);
  EXPECT_EQ(facts.problem, "");
  EXPECT_EQ(facts.code_version, code_version());
  EXPECT_GT(facts.free_disk, 0U);
  EXPECT_GT(facts.free_memory, 0U);
  EXPECT_GT(facts.weight_bytes, 1000U);
  EXPECT_EQ(facts.checkpoint_bytes, 2 * facts.weight_bytes);
  const auto last = facts_of_process(config, 1, {3}, "/", 1);
  EXPECT_LT(last.weight_bytes, facts.weight_bytes);
  const auto back = parse_facts(facts_text(facts), 1);
  EXPECT_EQ(facts_text(back), facts_text(facts));
  EXPECT_THAT(back.settings, testing::Contains(std::pair<std::string, std::string>("train.epochs", "3")));
}

TEST(Facts, SayWhatIsWrongWithTheData) {
  const auto facts =
      facts_of_process(config_with({"data.kind=cifar10", "data.root=/not/there"}), 0, {0}, ".", 1);
  EXPECT_THAT(facts.problem, HasSubstr("/not/there"));
}

TEST(Facts, SayWhereAStoreCannotLie) {
  const auto problem = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"compression.store.place=file", "compression.store.folder=/dev/null/x"});
    return facts_of_process(config_with(std::move(overrides)), 0, {0}, ".", 1).problem;
  };
  EXPECT_EQ(problem({}), "") << "nothing is kept";
  EXPECT_THAT(problem({"compression.activations={codec=\"quant:4\", feedback=\"aq-sgd\"}"}),
              HasSubstr("compression.store.folder: /dev/null: cannot hold a file"));
}

TEST(Facts, ThatAreNoneAreErrorsOfTheWire) {
  EXPECT_THROW(parse_facts("{}", 1), WireError);
  EXPECT_THROW(parse_facts("hello", 1), WireError);
}

/// What each of two ranks hears that join in these ways.
std::vector<std::string> complaints(const std::function<void(const Membership& member)>& first,
                                    const std::function<void(const Membership& member)>& second) {
  const test::Ranks ranks(2);
  return test::run_in_threads(2, [&](int rank) { (rank == 0 ? first : second)(ranks.membership(rank)); });
}

TEST(Joining, OneThatIsNotExaminedIsNamed) {
  const auto config = config_with({R"(model.cuts=["layer2"])"});
  const auto joins = [&](const Membership& member) {
    join_examination(config, member, 0.05, [](const auto&) {});
  };
  const auto with = [](const std::string& handshake) {
    return [handshake](const Membership& member) {
      join_group(
          Carrier::tcp, member, std::chrono::seconds(20), handshake, [](const auto&) {}, [](const auto&) {});
    };
  };
  EXPECT_THAT(complaints(joins, joins), Each(IsEmpty()));
  EXPECT_EQ(complaints(joins, with("{}"))[0],
            "rank 0: rank 1 does not run strait doctor --ranks; start the same for every rank");
  EXPECT_EQ(complaints(joins, with(R"({"doctor": 9, "code_version": "9.0"})"))[0],
            "rank 0: rank 1 has strait 9.0, whose doctor speaks another language than that of " +
                code_version() + "; install one version everywhere");
}

}  // namespace
}  // namespace strait
