// Feedback whose state belongs to samples (slots=sample), against links that each serve one sample.

#include <filesystem>

#include "tests/links/pair.h"

namespace strait {
namespace {

using test::expect_equal;
using test::Pair;

using Ids = std::vector<int64_t>;

constexpr const char* kCodec = "topk:0.25";

/// Samples met before and new ones in one message, batches of several lengths, ids far apart.
const std::vector<Ids> kBatches = {{0, 1, 2}, {70000, 1}, {2, 5, 0, 1}, {5}, {9, 1, 2, 0}, {70000, 5, 9}};

at::Tensor send(Pair& pair, const at::Tensor& x, const Ids& ids, size_t first_row = 0) {
  return pair.send(x, MessageContext{.seed = 3, .first_row = first_row, .ids = ids});
}

at::Tensor batch_of(const Ids& ids) { return at::randn({static_cast<int64_t>(ids.size()), 2, 10}); }

class SampleSlots : public testing::TestWithParam<const char*> {
 protected:
  static std::string by_sample(const std::string& more = "") { return GetParam() + (",slots=sample" + more); }
};

TEST_P(SampleSlots, GiveEverySampleALinkOfItsOwn) {
  at::manual_seed(1);
  Pair all(by_sample(), kCodec);
  Pair shared(make_link(kCodec, by_sample()));
  std::map<int64_t, Pair> own;
  for (int round = 0; round < 3; ++round) {
    for (const Ids& ids : kBatches) {
      const at::Tensor x = batch_of(ids);
      at::Tensor expected = at::empty_like(x);
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        Pair& alone = own.try_emplace(ids[i], GetParam(), kCodec).first->second;
        expected.narrow(0, row, 1).copy_(alone.send(x.narrow(0, row, 1)));
      }
      EXPECT_TRUE(at::equal(send(all, x, ids), expected)) << round;
      EXPECT_TRUE(at::equal(send(shared, x, ids), expected)) << round;
      EXPECT_EQ(all.bytes(), shared.bytes());
    }
  }
}

TEST_P(SampleSlots, AreTheRowsWhereABatchIsAlwaysTheSame) {
  for (const char* codec : {"topk:0.3,scope=tensor", "topk:0.2,values=quant:4", "topk:1"}) {
    at::manual_seed(2);
    Pair samples(by_sample(), codec);
    Pair rows(GetParam(), codec);
    const Ids ids = {7, 3, 5};
    for (int message = 0; message < 5; ++message) {
      const at::Tensor x = batch_of(ids);
      EXPECT_TRUE(at::equal(send(samples, x, ids), send(rows, x, ids))) << codec;
      EXPECT_EQ(samples.bytes(), rows.bytes());
    }
  }
}

TEST_P(SampleSlots, DoNotDependOnPositionsInMicroBatches) {
  at::manual_seed(3);
  Pair whole(by_sample(), kCodec);
  Pair parts(by_sample(), kCodec);
  const Ids ids = {3, 1, 4, 5};
  for (int round = 0; round < 3; ++round) {
    const at::Tensor x = batch_of(ids);
    const at::Tensor seen = send(whole, x, ids);
    EXPECT_TRUE(at::equal(send(parts, x.narrow(0, 2, 2), {4, 5}, 2), seen.narrow(0, 2, 2)));
    EXPECT_TRUE(at::equal(send(parts, x.narrow(0, 0, 2), {3, 1}), seen.narrow(0, 0, 2)));
  }
}

TEST_P(SampleSlots, GoOnFromASavedState) {
  at::manual_seed(4);
  for (const char* store : {"", ",format=bf16,place=file"}) {
    Pair first(by_sample(store), kCodec);
    send(first, batch_of({4, 5, 6}), {4, 5, 6});
    send(first, batch_of({6, 7}), {6, 7});
    Pair second(by_sample(store), kCodec);
    test::load_state(second.encoder(), first.encoder_state());
    test::load_state(second.decoder(), first.decoder_state());
    const Ids ids = {7, 4, 8, 6};
    const at::Tensor x = batch_of(ids);
    EXPECT_TRUE(at::equal(send(first, x, ids), send(second, x, ids)));
    expect_equal(first.encoder_state(), second.encoder_state());
    expect_equal(first.decoder_state(), second.decoder_state());
  }
}

/// Test samples have no state, whatever ids come with them.
TEST_P(SampleSlots, EvaluationMeetsNoState) {
  at::manual_seed(5);
  const Ids ids = {0, 1, 2};
  Pair trained(by_sample(), kCodec);
  send(trained, batch_of(ids), ids);
  const auto encoder = trained.encoder_state();
  const auto decoder = trained.decoder_state();
  Pair fresh(GetParam(), kCodec);
  const at::Tensor x = batch_of(ids);
  EXPECT_TRUE(at::equal(trained.send(x, MessageContext{.ids = ids}, true), fresh.send(x, 0, true)));
  EXPECT_TRUE(at::equal(trained.send(x, MessageContext{}, true), fresh.send(x, 0, true)));
  expect_equal(trained.encoder_state(), encoder);
  expect_equal(trained.decoder_state(), decoder);
}

TEST_P(SampleSlots, TellWhatTheyAre) {
  StoreOptions store;
  store.format = "quant:4";
  const auto link = make_link(kCodec, by_sample(), store);
  EXPECT_EQ(link->slots(), Slots::samples);
  ASSERT_NE(link->store(), nullptr);
  EXPECT_EQ(link->store()->format, "quant:4") << "what the spec leaves open";
  EXPECT_TRUE(link->serves_gradients());
  EXPECT_EQ(make_link(kCodec, by_sample(",format=bf16"), store)->store()->format, "bf16");
  const auto rows = make_link(kCodec, std::string(GetParam()) + ",slots=rows", store);
  EXPECT_EQ(rows->slots(), Slots::rows);
  EXPECT_EQ(rows->store(), nullptr);
  EXPECT_EQ(rows->id(), link->id());
}

INSTANTIATE_TEST_SUITE_P(Links, SampleSlots, testing::Values("ef", "ef:0.5", "ef21", "diana:0.5", "ef-mixed"));

/// What a store of this format keeps of rows.
at::Tensor rounded(const std::string& format, const at::Tensor& x) {
  const std::string codec = format == "fp32" ? "none" : format == "bf16" ? "bf16" : format + ",scope=sample";
  return make_codec(codec)->reconstruct(x, {});
}

/// The state is rounded, and what the receiver sees is not.
TEST(SampleSlotsInFormats, KeepTheResidualRounded) {
  for (const std::string format : {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}) {
    at::manual_seed(6);
    Pair pair("ef,slots=sample,format=" + format, kCodec);
    const auto codec = make_codec(kCodec);
    const Ids ids = {3, 8};
    at::Tensor residual = at::zeros({2, 2, 10});
    for (int message = 0; message < 4; ++message) {
      const at::Tensor x = batch_of(ids);
      const at::Tensor expected = codec->reconstruct(x + residual, {});
      EXPECT_TRUE(at::equal(send(pair, x, ids), expected)) << format;
      residual = rounded(format, x + residual - expected);
    }
    EXPECT_TRUE(pair.decoder_state().empty());
  }
}

TEST(SampleSlotsInFormats, KeepTheEstimateRoundedAtBothEnds) {
  for (const std::string format : {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}) {
    at::manual_seed(7);
    Pair pair("ef21,slots=sample,format=" + format, kCodec);
    const auto codec = make_codec(kCodec);
    const Ids ids = {3, 8};
    at::Tensor estimate = at::zeros({2, 2, 10});
    for (int message = 0; message < 4; ++message) {
      const at::Tensor x = batch_of(ids);
      const at::Tensor seen = estimate + codec->reconstruct(x - estimate, {});
      EXPECT_TRUE(at::equal(send(pair, x, ids), seen)) << format;
      estimate = rounded(format, seen);
    }
    expect_equal(pair.encoder_state(), pair.decoder_state());
  }
}

/// Where the first visit of a sample crosses in full, ef21 by sample is aq-sgd.
TEST(SampleSlots, OfEf21WithAFullFirstVisitAreAqSgd) {
  for (const char* place : {"memory", "file"}) {
    for (const char* format : {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}) {
      for (const char* codec : {"topk:0.25", "quant:4,scope=sample"}) {
        SCOPED_TRACE(fmt::format("{} {} {}", place, format, codec));
        at::manual_seed(8);
        StoreOptions store{place, format, std::filesystem::temp_directory_path().string(), "warmup"};
        Pair ours("ef21,slots=sample", codec, store);
        Pair shared(make_link(codec, "ef21,slots=sample", store));
        store.fill = "first_visit";
        Pair aq_sgd("aq-sgd", codec, store);
        const Ids all = {9, 4, 70000, 2, 5};
        const at::Tensor first = batch_of(all);
        EXPECT_TRUE(at::equal(send(aq_sgd, first, all), first));
        for (Pair* pair : {&ours, &shared}) {
          pair->encoder().observe(first, {.ids = all});
          pair->decoder().observe(first, {.ids = all});
        }
        for (const Ids& ids : {Ids{4, 9}, Ids{2, 5, 70000}, Ids{5, 4, 2}, all}) {
          const at::Tensor x = batch_of(ids);
          const at::Tensor expected = send(aq_sgd, x, ids);
          EXPECT_TRUE(at::equal(send(ours, x, ids), expected));
          EXPECT_TRUE(at::equal(send(shared, x, ids), expected));
          EXPECT_EQ(ours.bytes(), aq_sgd.bytes());
        }
        const auto buffers = aq_sgd.decoder_state();
        for (const auto& state : {ours.encoder_state(), ours.decoder_state(), shared.decoder_state()}) {
          ASSERT_EQ(state.size(), buffers.size());
          for (const auto& [name, value] : buffers) EXPECT_TRUE(at::equal(state.at("estimate." + name), value));
        }
        EXPECT_TRUE(shared.encoder_state().empty());
      }
    }
  }
}

TEST(SampleSlots, AMessageWithoutItsIdsIsAnError) {
  Pair pair("ef21,slots=sample", kCodec);
  EXPECT_THROW(send(pair, at::randn({3, 8}), {0, 1}), InternalError);
}

TEST(SampleSlots, SpecsThatCannotBeAreRefused) {
  const auto complaint = [](const char* feedback) {
    try {
      make_link(kCodec, feedback);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint("ef21,slots=columns"),
            "feedback \"ef21,slots=columns\": slots must be one of: rows, sample, class, not \"columns\"");
  EXPECT_EQ(complaint("ef21,format=bf16"),
            "feedback \"ef21,format=bf16\": ef21 has no option \"format\"; it has: slots");
  EXPECT_EQ(complaint("ef,slots=sample,fill=warmup"),
            "feedback \"ef,slots=sample,fill=warmup\": ef has no option \"fill\"; it has: decay, slots, place, "
            "format, folder");
  EXPECT_EQ(
      complaint("ef21,slots=sample,format=quant:3"),
      "feedback \"ef21,slots=sample,format=quant:3\": format must be one of: fp32, bf16, quant:8, quant:4, "
      "quant:2, not \"quant:3\"");
  EXPECT_EQ(
      complaint("aq-sgd,slots=sample"),
      "feedback \"aq-sgd,slots=sample\": aq-sgd has no option \"slots\"; it has: place, format, fill, folder");
}

}  // namespace
}  // namespace strait
