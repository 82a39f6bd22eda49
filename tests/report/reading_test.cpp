#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "strait/base/error.h"
#include "strait/report/tables.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/errors.h"
#include "tests/support/nested.h"
#include "tests/support/temp_dir.h"

namespace strait::report {
namespace {

using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Optional;
using testing::StartsWith;

class Reading : public testing::Test {
 protected:
  report::Run read() { return read_run(dir_ / "run"); }

  /// The error of reading the run, without the folder's name.
  std::string error() {
    const std::string message = message_of<InputError>([&] { read(); });
    const std::string folder = (dir_ / "run").string() + "/";
    return message.starts_with(folder) ? message.substr(folder.size()) : message;
  }

  void write(const std::string& status, const std::string& lines) {
    test::write_run(dir_ / "run", "name", 7, status, lines);
  }

  std::vector<Table> tables(const std::vector<std::filesystem::path>& folders) { return read_tables(folders); }

  std::vector<std::string> names(const Table& table) {
    std::vector<std::string> result;
    for (const auto& variant : table.variants) result.push_back(variant.name);
    return result;
  }

  test::TempDir dir_;
};

TEST_F(Reading, TakesWhatARunLeaves) {
  write("done", test::epoch_line(0, 2.5, 10, 11) + test::epoch_line(1, 1.5, 20, 21));
  const report::Run run = read();
  EXPECT_EQ(run.name, "name");
  EXPECT_EQ(run.folder, "run");
  EXPECT_EQ(run.seed, 7U);
  EXPECT_EQ(run.status, Status::done);
  EXPECT_EQ(run.code_version, "0.1.0+0123456789ab");
  EXPECT_THAT(run.config, HasSubstr("seed = 7"));
  EXPECT_EQ(run.updated, 1.8e9 + 7 * 3600);
  ASSERT_EQ(run.epochs.size(), 2U);
  EXPECT_EQ(run.epochs[1].number, 1);
  EXPECT_THAT(run.epochs[1].train_loss, Optional(1.5));
  EXPECT_EQ(run.epochs[1].off.at("accuracy"), 20);
  EXPECT_EQ(run.epochs[1].on.at("accuracy"), 21);
  EXPECT_EQ(run.epochs[1].seconds, 4);
  EXPECT_EQ(run.epochs[1].boundaries.at(0).gradients.wire_bytes, 2000);
}

TEST_F(Reading, SaysWhatOnIs) {
  const std::string line = test::epoch_line(0, 2.5, 10, 11);
  write("done", line);
  const Epoch old = read().epochs.at(0);
  EXPECT_EQ(old.evaluation, "plain");
  EXPECT_EQ(old.plain.at("accuracy"), 11);
  EXPECT_TRUE(old.frozen.empty());
  const auto with = [&](const std::string& modes) {
    std::string all = line;
    return all.insert(all.find("\"off\""), modes);
  };
  write(
      "done",
      with(R"("evaluation":"live","plain":{"accuracy":12},"frozen":{"accuracy":13},"live":{"accuracy":11},)"));
  const Epoch epoch = read().epochs.at(0);
  EXPECT_EQ(epoch.evaluation, "live");
  EXPECT_EQ(epoch.on.at("accuracy"), 11);
  EXPECT_EQ(epoch.plain.at("accuracy"), 12);
  EXPECT_EQ(epoch.frozen.at("accuracy"), 13);
  EXPECT_EQ(epoch.live.at("accuracy"), 11);
  write("done", with(R"("evaluation":"x|y",)"));
  EXPECT_EQ(error(),
            "metrics.jsonl:1: test.evaluation: expected \"plain\", \"frozen\" or \"live\", found \"x|y\"");
}

TEST_F(Reading, NullIsNotMeasured) {
  write(
      "diverged",
      R"({"epoch":0,"steps":1,"train_loss":null,"test":{"off":{"accuracy":null,"loss":1},"on":{}},"seconds":1,)"
      R"("evaluation_seconds":1,"boundaries":[{"name":"b","activations":{"raw_bytes":1,"wire_bytes":1,)"
      R"("diagnostics":{"messages":4,"zeros":0.5,"cosine":null,"quantiles":{"0.9":3,"1":null}}},)"
      R"("gradients":{"raw_bytes":1,"wire_bytes":1}}]})"
      "\n");
  const Epoch epoch = read().epochs.at(0);
  EXPECT_EQ(epoch.train_loss, std::nullopt);
  EXPECT_THAT(epoch.off, ElementsAre(std::pair("loss", 1.0)));
  EXPECT_THAT(epoch.boundaries.at(0).activations.diagnostics,
              ElementsAre(std::pair("quantile 0.9", 3.0), std::pair("zeros", 0.5)));
  EXPECT_TRUE(epoch.boundaries.at(0).gradients.diagnostics.empty());
}

TEST_F(Reading, ALineThatIsBeingWrittenDoesNotCountYet) {
  const std::string line = test::epoch_line(0, 2.5, 10, 11);
  write("running", line + line.substr(0, 40));
  EXPECT_EQ(read().epochs.size(), 1U);
  write("running", "");
  EXPECT_TRUE(read().epochs.empty());
  write("done", line + line.substr(0, 40));
  EXPECT_EQ(error(), "metrics.jsonl:2: ends inside a line");
}

TEST_F(Reading, NamesTheFileTheLineAndWhatWasExpected) {
  const std::string good = test::epoch_line(0, 2.5, 10, 11);
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string line = good;
    line.replace(line.find(what), what.size(), instead);
    return line;
  };
  const std::pair<std::string, std::string> rows[] = {
      {"nonsense\n", "metrics.jsonl:2: is not JSON (at byte 2)"},
      {"\n", "metrics.jsonl:2: is not JSON (at byte 1)"},
      {test::nested(300'000) + "\n", "metrics.jsonl:2: is nested deeper than 100 levels"},
      {with("2.5", "1e999"), "metrics.jsonl:2: the number 1e999 is too large (at byte 267)"},
      {with("\"epoch\":0", "\"epoch\":2147483648"),
       "metrics.jsonl:2: epoch: expected an integer from 0 to 2147483647, found 2147483648"},
      {with("2.5", "\"" + std::string(1000, 'x') + "\""),
       "metrics.jsonl:2: train_loss: expected a number, found \"" + std::string(99, 'x') + "..."},
      {"3\n", "metrics.jsonl:2: expected an object, found 3"},
      {with("\"epoch\":0", "\"epoch\":-1"), "metrics.jsonl:2: epoch: expected an integer >= 0, found -1"},
      {with("\"train_loss\":2.5", "\"train_loss\":\"x\""),
       "metrics.jsonl:2: train_loss: expected a number, found \"x\""},
      {with("\"steps\":2,", ""), "metrics.jsonl:2: steps: missing"},
      {with("\"steps\":2,", "\"steps\":9223372036854775808,"),
       "metrics.jsonl:2: steps: expected an integer from 0 to 9223372036854775807, found 9223372036854775808"},
      {with("\"steps\":2,", "\"steps\":-2,"),
       "metrics.jsonl:2: steps: expected a number from 0 to 9223372036854775807, found -2"},
      {with("{\"accuracy\":10.0}", "[]"), "metrics.jsonl:2: test.off: expected an object, found array"},
      {with("\"wire_bytes\":2000", "\"wire_bytes\":{}"),
       "metrics.jsonl:2: boundaries[0].gradients.wire_bytes: expected a number, found object"},
  };
  for (const auto& [line, message] : rows) {
    write("running", good + line);
    EXPECT_EQ(error(), message) << line;
  }
}

TEST_F(Reading, MissingAndMalformedFilesAreNamed) {
  write("done", "");
  std::filesystem::remove(dir_ / "run/metrics.jsonl");
  EXPECT_EQ(error(), "metrics.jsonl: cannot be opened: No such file or directory");
  std::filesystem::remove(dir_ / "run/config.toml");
  EXPECT_EQ(error(), "config.toml: cannot be opened: No such file or directory");
  write("finished", "");
  EXPECT_EQ(error(), "status.json: status: expected a status of a run, found \"finished\"");
  test::write_file(dir_ / "run/status.json", "{");
  EXPECT_EQ(error(), "status.json: is not JSON (at byte 2)");
}

TEST_F(Reading, APipeAHugeFileAndATimeThatIsNoneAreRefused) {
  write("running", "");
  const std::string metrics = dir_ / "run/metrics.jsonl";
  std::filesystem::resize_file(metrics, uint64_t{1} << 40);  // sparse
  EXPECT_EQ(error(), "metrics.jsonl: has 1099511627776 bytes, expected at most 268435456");
  std::filesystem::remove(metrics);
  ASSERT_EQ(mkfifo(metrics.c_str(), 0600), 0);
  EXPECT_EQ(error(), "metrics.jsonl: expected a file, found a pipe");
  std::filesystem::remove(metrics);
  std::filesystem::create_directory(metrics);
  EXPECT_EQ(error(), "metrics.jsonl: expected a file, found a folder");
  std::filesystem::remove(metrics);
  write("running", "");

  const std::string good = test::read_file(dir_ / "run/status.json");
  const size_t begin = good.find("\"updated\":");
  ASSERT_NE(begin, std::string::npos);
  for (const char* number : {"1e300", "-1", "253402300800"}) {
    std::string text = good;
    text.replace(begin, good.find_first_of(",}", begin) - begin, std::string("\"updated\":") + number);
    test::write_file(dir_ / "run/status.json", text);
    EXPECT_THAT(error(),
                StartsWith("status.json: updated: expected seconds since 1970, before the year 10000"));
  }
  test::write_file(dir_ / "run/status.json", "{\"x\":" + test::nested(300'000) + "}");
  EXPECT_EQ(error(), "status.json: is nested deeper than 100 levels");
}

TEST_F(Reading, ASweepGivesVariantsInTheOrderOfItsFile) {
  test::write_sample_sweep(dir_ / "sweep");
  const auto found = tables({dir_ / "sweep/"});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].title, "Quantisation and TopK");
  EXPECT_THAT(names(found[0]), ElementsAre("none", "fw4-bw8", "fw4-bw4", "fw2-bw8", "topk-10", "fw4-bw2"));
  EXPECT_THAT(found[0].variants[1].published.off, Optional(93.10));
  EXPECT_EQ(found[0].variants[5].published.on, std::nullopt);
  ASSERT_EQ(found[0].variants[5].runs.size(), 3U);
  EXPECT_EQ(found[0].variants[5].runs[1].status, Status::diverged);
  EXPECT_EQ(found[0].variants[5].runs[2].seed, 2U);
}

TEST_F(Reading, ASweepKnowsWhatItsRunsCouldNotWrite) {
  const std::string line = test::epoch_line(0, 2.5, 10, 11);
  test::write_run(dir_ / "s/killed-seed0", "killed-seed0", 0, "running", line);
  test::write_run(dir_ / "s/alive-seed0", "alive-seed0", 0, "running", line);
  const auto failed = [](const std::string& variant) {
    return test::sweep_entry(variant, 0, "failed").insert(1, R"("error": "killed by signal 9", )");
  };
  test::write_run(dir_ / "s/old-seed0", "another", 0, "done", line);
  test::write_file(dir_ / "s/sweep.json",
                   R"({"name": "s", "runs": [)" + failed("killed") + "," + failed("unborn") + "," +
                       test::sweep_entry("alive", 0, "running") + "," + test::sweep_entry("old", 0, "waiting") +
                       "," + test::sweep_entry("none", 0, "waiting") + "]}");
  const auto variants = tables({dir_ / "s"}).at(0).variants;
  ASSERT_EQ(variants.size(), 5U);
  EXPECT_EQ(variants[0].runs[0].status, Status::failed);
  EXPECT_EQ(variants[0].runs[0].epochs.size(), 1U);
  EXPECT_EQ(variants[0].runs[0].error, "killed by signal 9");
  EXPECT_EQ(variants[1].runs[0].status, Status::failed);
  EXPECT_EQ(variants[1].runs[0].error, "killed by signal 9") << "before it had written anything";
  EXPECT_EQ(variants[2].runs[0].status, Status::running);
  EXPECT_EQ(variants[3].runs[0].status, Status::waiting);
  EXPECT_TRUE(variants[3].runs[0].epochs.empty());
  EXPECT_THAT(variants[3].runs[0].error, HasSubstr("another configuration"));
  EXPECT_EQ(variants[4].runs[0].status, Status::waiting);
  EXPECT_EQ(variants[4].runs[0].error, "");
}

TEST_F(Reading, ASweepFileIsChecked) {
  const auto error_of = [&](const std::string& text) {
    test::write_file(dir_ / "sweep.json", text);
    return message_of<InputError>([&] { tables({dir_.path()}); });
  };
  EXPECT_THAT(error_of("[]"), HasSubstr("sweep.json: expected an object, found array"));
  EXPECT_THAT(error_of(R"({"name": 3})"), HasSubstr("sweep.json: name: expected a string, found 3"));
  EXPECT_THAT(error_of(R"({"name": "s"})"), HasSubstr("sweep.json: runs: missing"));
  EXPECT_THAT(error_of(R"({"name": "s", "runs": [{"seed": 0}]})"),
              HasSubstr("sweep.json: runs[0].variant: missing"));
  EXPECT_THAT(error_of("{\"runs\": " + test::nested(300'000) + "}"),
              HasSubstr("sweep.json: is nested deeper than 100 levels"));
}

TEST_F(Reading, ASweepShowsNothingFromOutsideOfItsFolder) {
  test::write_run(dir_ / "outside", "outside", 0, "done", test::epoch_line(0, 2.5, 10, 11));
  std::filesystem::create_directories(dir_ / "s");
  for (const char* folder : {"../outside", "..", ".", "", "a/b", "/etc", "x\\u0000"}) {
    std::string entry = test::sweep_entry("outside", 0, "done");
    const size_t begin = entry.find("outside-seed0", entry.find("\"folder\":"));
    ASSERT_NE(begin, std::string::npos);
    entry.replace(begin, std::string("outside-seed0").size(), folder);
    test::write_file(dir_ / "s/sweep.json", R"({"name": "s", "runs": [)" + entry + "]}");
    EXPECT_THAT(
        message_of<InputError>([&] { tables({dir_ / "s"}); }),
        HasSubstr("sweep.json: runs[0].folder: expected the name of a folder in the sweep's folder, found"))
        << folder;
  }
}

TEST_F(Reading, FoldersOfRunsAndSweepsAreFound) {
  const std::string line = test::epoch_line(0, 2.5, 10, 11);
  test::write_run(dir_ / "all/plain/b", "b", 0, "done", line);
  test::write_run(dir_ / "all/plain/a", "a", 0, "done", line);
  test::write_sample_sweep(dir_ / "all/sweep");
  test::write_run(dir_ / "x", "one", 0, "done", line);
  test::write_run(dir_ / "y", "one", 1, "done", line);
  const auto found = tables({dir_ / "all", dir_ / "x", dir_ / "y"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].title, "one");
  EXPECT_EQ(found[0].variants.at(0).runs.size(), 2U);
  EXPECT_EQ(found[1].title, "plain");
  EXPECT_THAT(names(found[1]), ElementsAre("a", "b"));
  EXPECT_EQ(found[2].name, "table1");
}

TEST_F(Reading, RunsShareARowWhereTheirSeedsAloneDiffer) {
  const auto write_of = [&](const std::string& folder, uint64_t seed, const std::string& keys) {
    test::write_run(dir_ / folder, "net", seed, "done", test::epoch_line(0, 2.5, 10, 11));
    test::write_file(dir_ / folder / "config.toml", fmt::format("name = \"net\"\nseed = {}\n{}", seed, keys));
  };
  write_of("runs/a", 0, "[train]\noptimizer = { lr = 0.1 }\n");
  write_of("runs/b", 1,
           "[train]\noptimizer = { lr = 0.1 }\n[data]\nroot = \"/elsewhere\"\n[checkpoint]\nkeep = 3\n");
  write_of("runs/c", 0, "[train]\noptimizer = { lr = 0.2 }\n");
  write_of("runs/d", 1, "[train]\noptimizer = { lr = 0.2 }\n");
  write_of("runs/e", 0, "[train]\noptimizer = { lr = 0.1 }\n");  // once more
  const auto variants = tables({dir_ / "runs"}).at(0).variants;
  ASSERT_EQ(variants.size(), 3U);
  EXPECT_EQ(variants[0].name, "net");
  EXPECT_EQ(variants[1].name, "net (c)");
  EXPECT_EQ(variants[2].name, "net (e)");
  EXPECT_EQ(variants[0].runs.size(), 2U);
  EXPECT_EQ(variants[1].runs.size(), 2U);
  EXPECT_EQ(variants[1].runs[1].folder, "d");
  EXPECT_EQ(variants[2].runs.size(), 1U);

  write_of("other/c", 0, "[train]\noptimizer = { lr = 0.3 }\n");
  const auto given = tables({dir_ / "runs/a", dir_ / "runs/c", dir_ / "other/c", dir_ / "runs/../runs/a"});
  EXPECT_THAT(names(given.at(0)), ElementsAre("net", "net (c)", "net (other/c)"));
  EXPECT_EQ(given[0].variants[0].runs.size(), 1U) << "a folder counts once";
}

TEST_F(Reading, LinksCountWhereAutoChoosesByTime) {
  const auto rows_of = [&](const std::string& folder, const std::string& budget) {
    for (const uint64_t seed : {0, 1}) {
      const auto run = dir_ / folder / fmt::format("{}", seed);
      test::write_run(run, "net", seed, "done", test::epoch_line(0, 2.5, 10, 11));
      test::write_file(run / "config.toml",
                       fmt::format("[pipeline]\nlink = \"{}Mbps,0ms\"\n[compression.activations]\ncodec = "
                                   "\"auto\"\n[compression.auto]\n{}",
                                   seed + 1, budget));
    }
    return tables({dir_ / folder}).at(0).variants.size();
  };
  EXPECT_EQ(rows_of("by-time", ""), 2U);
  EXPECT_EQ(rows_of("also-by-time", "budget = 0.0\n"), 2U);
  EXPECT_EQ(rows_of("by-budget", "budget = 8.0\n"), 1U);
}

TEST_F(Reading, ARowHasANameOfItsOwnWhateverOthersAreCalled) {
  const auto line = test::epoch_line(0, 2.5, 10, 11);
  std::vector<std::filesystem::path> folders = {dir_ / "first"};
  test::write_run(folders.back(), "r", 0, "done", line);
  std::filesystem::path end;
  const std::filesystem::path last = std::filesystem::canonical(dir_.path()) / "x/last";
  for (auto folder = last; folder.has_filename(); folder = folder.parent_path()) {
    end = end.empty() ? folder.filename() : folder.filename() / end;
    folders.push_back(dir_ / fmt::format("other-{}", folders.size()));
    test::write_run(folders.back(), fmt::format("r ({})", end.string()), 0, "done", line);
  }
  folders.push_back(last);
  test::write_run(last, "r", 0, "done", line);
  auto found = names(tables(folders).at(0));
  ASSERT_EQ(found.size(), folders.size());
  EXPECT_THAT(found.back(), StartsWith("r ("));
  std::ranges::sort(found);
  EXPECT_EQ(std::ranges::adjacent_find(found), found.end());
}

TEST_F(Reading, AFolderCountsOnceByWhateverPath) {
  test::write_sample_sweep(dir_ / "all/sweep");
  test::write_run(dir_ / "all/runs/a", "a", 0, "done", test::epoch_line(0, 2.5, 10, 11));
  std::filesystem::create_directory_symlink(dir_ / "all", dir_ / "link");
  EXPECT_EQ(tables({dir_ / "all", dir_ / "all/.", dir_ / "link", dir_ / "all/runs"}).size(), 2U);
  EXPECT_EQ(tables({dir_ / "all/runs", dir_ / "all/sweep", dir_ / "all"}).size(), 2U);
  const auto whole = tables({dir_ / "all/runs/a", dir_ / "all"});
  ASSERT_EQ(whole.size(), 2U) << "none of the run alone";
  EXPECT_THAT(names(whole[0]), ElementsAre("a"));
  const std::filesystem::path run_of_sweep = whole[1].variants[0].runs[0].path;
  EXPECT_EQ(tables({run_of_sweep, dir_ / "all/sweep"}).size(), 1U);
  EXPECT_EQ(tables({dir_ / "all/sweep", run_of_sweep}).size(), 1U);
}

TEST_F(Reading, ASweepOfSeveralMachinesIsOneTable) {
  const auto write_sweep = [&](const std::string& folder, const std::vector<std::string>& entries) {
    std::filesystem::create_directories(dir_ / folder);
    test::write_file(dir_ / folder / "sweep.json",
                     fmt::format(R"({{"name": "s", "title": "S", "runs": [{}]}})", fmt::join(entries, ",")));
  };
  const std::string line = test::epoch_line(0, 2.5, 10, 11);
  const std::string lines = line + test::epoch_line(1, 1.5, 20, 21);
  const auto entry = [](const char* variant, uint64_t seed, const char* status) {
    return test::sweep_entry(variant, seed, status);
  };
  write_sweep("mA", {entry("none", 0, "done"), entry("none", 1, "waiting"), entry("topk", 0, "running")});
  write_sweep("mB", {entry("none", 0, "waiting"), entry("none", 1, "done"), entry("topk", 0, "running")});
  test::write_run(dir_ / "mA/none-seed0", "none-seed0", 0, "done", lines);
  test::write_run(dir_ / "mA/topk-seed0", "topk-seed0", 0, "running", line);
  test::write_run(dir_ / "mB/none-seed1", "none-seed1", 1, "done", lines);
  test::write_run(dir_ / "mB/topk-seed0", "topk-seed0", 0, "running", lines);
  const auto merged = tables({dir_ / "mA", dir_ / "mB"});
  ASSERT_EQ(merged.size(), 1U);
  EXPECT_EQ(merged[0].title, "S");
  ASSERT_THAT(names(merged[0]), ElementsAre("none", "topk"));
  ASSERT_EQ(merged[0].variants[0].runs.size(), 2U);
  for (const auto& run : merged[0].variants[0].runs) EXPECT_EQ(run.status, Status::done);
  ASSERT_EQ(merged[0].variants[1].runs.size(), 1U);
  EXPECT_EQ(merged[0].variants[1].runs[0].epochs.size(), 2U) << "the one that has come further";

  write_sweep("mC/s", {entry("none", 0, "done")});
  write_sweep("mD/s", {entry("none", 1, "waiting")});
  const auto apart = tables({dir_ / "mC/s", dir_ / "mD/s", dir_ / "mA"});
  ASSERT_EQ(apart.size(), 3U) << "of other runs";
  EXPECT_EQ(apart[0].name, "s (mC/s)");
  EXPECT_EQ(apart[0].title, "S (mC/s)");
  EXPECT_EQ(apart[1].title, "S (mD/s)");
}

TEST_F(Reading, ATableOfRunsIsCalledByTheirNames) {
  std::vector<std::filesystem::path> folders;
  for (const char* name : {"none", "topk", "quant", "sign", "random"}) {
    folders.push_back(dir_ / name);
    test::write_run(folders.back(), name, 0, "running", "");
  }
  EXPECT_EQ(tables(folders).at(0).title, "none, topk, quant and 2 more");
  folders.resize(3);
  EXPECT_EQ(tables(folders).at(0).title, "none, topk, quant");
}

TEST_F(Reading, NoTableIsCalledAsThatOfTheRunsGiven) {
  test::write_run(dir_ / "alone", "net", 0, "running", "");
  test::write_run(dir_ / "a/runs/x", "x", 0, "running", "");
  test::write_run(dir_ / "net/y", "y", 0, "running", "");
  const auto found = tables({dir_ / "alone", dir_ / "a/runs", dir_ / "net"});
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT((std::vector{found[0].name, found[1].name, found[2].name}),
              ElementsAre("runs", "runs (runs)", "net"));
  EXPECT_THAT((std::vector{found[0].title, found[1].title, found[2].title}),
              ElementsAre("net", "runs", "net (net)"));
}

TEST_F(Reading, WhatCannotBeReadIsNamed) {
  const auto folder = dir_ / "runs";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("status.json", folder / "status.json");  // to itself
  EXPECT_THAT(message_of<InputError>([&] { tables({folder}); }), HasSubstr("status.json: cannot be read: "));
}

TEST_F(Reading, AFolderWithoutRunsIsWrong) {
  EXPECT_THAT(message_of<InputError>([&] { tables({dir_.path()}); }), HasSubstr("found no status.json"));
  EXPECT_THAT(message_of<InputError>([&] { tables({dir_ / "missing"}); }),
              HasSubstr("missing: is not a folder"));
}

}  // namespace
}  // namespace strait::report
