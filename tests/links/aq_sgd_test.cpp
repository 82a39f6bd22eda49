// AQ-SGD and its store against the definition, computed here with one plain buffer per sample.

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <numeric>

#include "strait/links/sample_store.h"
#include "tests/links/pair.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using test::expect_equal;
using test::Pair;

using Ids = std::vector<int64_t>;

at::Tensor send(Pair& pair, const at::Tensor& x, const Ids& ids, uint64_t step = 0) {
  return pair.send(x, MessageContext{.seed = 3, .step = step, .ids = ids});
}

/// What a store of this format keeps of a row.
at::Tensor rounded(const std::string& format, const at::Tensor& row) {
  const std::string codec = format == "fp32" ? "none" : format == "bf16" ? "bf16" : format + ",scope=sample";
  return make_codec(codec)->reconstruct(row, {});
}

/// The definition: x in full on a first visit, otherwise the buffer moved on by C(x - buffer).
class Plain {
 public:
  Plain(const std::string& codec, std::string format) : codec_(make_codec(codec)), format_(std::move(format)) {}

  /// Without compression, before the first message.
  void observe(const at::Tensor& x, const Ids& ids) {
    for (size_t i = 0; i < ids.size(); ++i) {
      buffers_[ids[i]] = rounded(format_, x.narrow(0, static_cast<int64_t>(i), 1));
    }
  }

  at::Tensor send(const at::Tensor& x, const Ids& ids) {
    at::Tensor seen = at::empty_like(x);
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto row = static_cast<int64_t>(i);
      at::Tensor value = x.narrow(0, row, 1);
      if (const auto old = buffers_.find(ids[i]); old != buffers_.end()) {
        value = old->second + codec_->reconstruct(value - old->second, {});
      }
      buffers_[ids[i]] = rounded(format_, value);
      seen.narrow(0, row, 1).copy_(value);
    }
    return seen;
  }

 private:
  std::shared_ptr<const Codec> codec_;
  std::string format_;
  std::map<int64_t, at::Tensor> buffers_;
};

struct Case {
  std::string codec;
  StoreOptions store;
};

class AqSgd : public testing::TestWithParam<Case> {
 protected:
  Pair pair() const { return {"aq-sgd", GetParam().codec, GetParam().store}; }
};

TEST_P(AqSgd, EqualsTheDefinition) {
  at::manual_seed(1);
  Pair both = pair();
  Pair shared(make_link(GetParam().codec, "aq-sgd", GetParam().store));
  Plain plain(GetParam().codec, GetParam().store.format);
  // Samples met before and new ones in one message, batches of several lengths, ids far apart.
  const std::vector<Ids> batches = {{0, 1, 2}, {70000, 1}, {2, 5, 0, 1}, {5}, {9, 1, 2, 0}, {70000, 5, 9}};
  for (int round = 0; round < 3; ++round) {
    for (const Ids& ids : batches) {
      const at::Tensor x = at::randn({static_cast<int64_t>(ids.size()), 3, 11}) * (1 + round);
      const at::Tensor expected = plain.send(x, ids);
      EXPECT_TRUE(at::equal(send(both, x, ids), expected)) << round;
      EXPECT_TRUE(at::equal(send(shared, x, ids), expected)) << round;
    }
  }
  expect_equal(both.encoder_state(), both.decoder_state());
  expect_equal(both.decoder_state(), shared.decoder_state());
  EXPECT_TRUE(shared.encoder_state().empty());
}

TEST_P(AqSgd, AFirstVisitIsExact) {
  Pair both = pair();
  const at::Tensor x = at::randn({4, 20});
  EXPECT_TRUE(at::equal(send(both, x, {7, 3, 4, 1}), x));
  EXPECT_EQ(both.bytes(), static_cast<size_t>(x.nbytes()));
}

TEST_P(AqSgd, BothEndsHoldTheSameBitsAfterAThousandMessages) {
  at::manual_seed(2);
  Pair both = pair();
  for (int message = 0; message < 1000; ++message) {
    Ids ids(5);
    std::iota(ids.begin(), ids.end(), message * 5 % 40);
    send(both, at::randn({5, 17}), ids, static_cast<uint64_t>(message));
  }
  expect_equal(both.encoder_state(), both.decoder_state());
  EXPECT_EQ(both.decoder_state().at("ids").numel(), 40);
}

/// Buffers that the warm-up filled: the first message is a difference already.
TEST_P(AqSgd, BuffersCanBeFilledByTheWarmUp) {
  at::manual_seed(6);
  StoreOptions store = GetParam().store;
  for (const bool fills : {true, false}) {
    store.fill = fills ? "warmup" : "first_visit";
    Pair both("aq-sgd", GetParam().codec, store);
    Pair shared(make_link(GetParam().codec, "aq-sgd", store));
    Plain plain(GetParam().codec, store.format);
    const Ids ids = {5, 1, 8};
    for (int epoch = 0; epoch < 2; ++epoch) {
      const at::Tensor x = at::randn({3, 16});
      const MessageContext context{.ids = ids};
      for (Pair* pair : {&both, &shared}) {
        pair->encoder().observe(x, context);
        pair->decoder().observe(x, context);
      }
      if (fills) plain.observe(x, ids);
    }
    expect_equal(both.encoder_state(), both.decoder_state());
    const at::Tensor x = at::randn({3, 16});
    const at::Tensor expected = plain.send(x, ids);
    EXPECT_TRUE(at::equal(send(both, x, ids), expected)) << fills;
    EXPECT_TRUE(at::equal(send(shared, x, ids), expected)) << fills;
    EXPECT_EQ(both.bytes() < static_cast<size_t>(x.nbytes()), fills);
    expect_equal(both.encoder_state(), both.decoder_state());
  }
}

TEST_P(AqSgd, EvaluationLeavesTheStateAlone) {
  Pair both = pair();
  send(both, at::randn({3, 8}), {0, 1, 2});
  const auto before = both.encoder_state();
  const at::Tensor x = at::randn({5, 8});
  EXPECT_TRUE(at::equal(both.send(x, MessageContext(), true), x));  // a test sample's visit is its first
  expect_equal(both.encoder_state(), before);
  expect_equal(both.decoder_state(), before);
}

TEST_P(AqSgd, GoesOnFromASavedState) {
  at::manual_seed(3);
  Pair first = pair();
  send(first, at::randn({3, 8}), {4, 5, 6});
  send(first, at::randn({2, 8}), {6, 7});
  Pair second = pair();
  test::load_state(second.encoder(), first.encoder_state());
  test::load_state(second.decoder(), first.decoder_state());
  const at::Tensor x = at::randn({4, 8});
  EXPECT_TRUE(at::equal(send(first, x, {7, 4, 8, 6}), send(second, x, {7, 4, 8, 6})));
  expect_equal(first.decoder_state(), second.decoder_state());
}

TEST_P(AqSgd, ThePositionsInMicroBatchesDoNotMatter) {
  at::manual_seed(4);
  Pair whole = pair();
  Pair parts = pair();
  const Ids ids = {3, 1, 4, 5};
  for (int round = 0; round < 3; ++round) {
    const at::Tensor x = at::randn({4, 12});
    const at::Tensor seen = send(whole, x, ids);
    EXPECT_TRUE(at::equal(send(parts, x.narrow(0, 0, 2), {3, 1}), seen.narrow(0, 0, 2)));
    EXPECT_TRUE(at::equal(send(parts, x.narrow(0, 2, 2), {4, 5}), seen.narrow(0, 2, 2)));
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* place : {"memory", "file"}) {
    for (const char* format : {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}) {
      for (const char* codec : {"topk:0.25", "quant:4,scope=sample"}) {
        all.push_back({codec, {place, format, std::filesystem::temp_directory_path().string()}});
      }
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const StoreOptions& store = info.param.store;
  std::string name = store.place + store.format + info.param.codec.substr(0, 4);
  std::erase(name, ':');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Stores, AqSgd, testing::ValuesIn(cases()), name_of);

TEST(SampleStore, AFileLeavesNothingBehind) {
  test::TempDir dir;
  SampleStore store({"file", "fp32", dir.path().string()});
  Ids ids(300);
  std::iota(ids.begin(), ids.end(), 0);
  const at::Tensor values = at::randn({300, 1000});
  store.write(ids, values);
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  store.prefetch(ids);
  EXPECT_TRUE(at::equal(store.read(ids, meta_of(values), at::kCPU), values));
}

/// Saving, loading and writing while the store's own thread is at work; for ThreadSanitizer.
TEST(SampleStore, ItsThreadWorksBesideEveryFunction) {
  test::TempDir dir;
  SampleStore store({"file", "fp32", dir.path().string()});
  struct Half {
    SampleStore& store;
    void visit_state(StateVisitor& visitor) { store.visit(visitor); }
  } half{store};
  Ids ids(200);
  at::Tensor values;
  for (int round = 0; round < 20; ++round) {
    std::iota(ids.begin(), ids.end(), round * 50);  // some are new, and the file grows
    values = at::randn({200, 100});
    store.write(ids, values);
    store.prefetch(ids);
    const auto state = test::state_of(half);
    EXPECT_EQ(state.at("ids").numel(), 200 + round * 50);
    test::load_state(half, state);
    store.prefetch(ids);
    EXPECT_TRUE(at::equal(store.read(ids, meta_of(values), at::kCPU), values));
  }
}

TEST(SampleStore, AFullDiskLeavesItAsItWas) {
  const test::TempDir dir;
  SampleStore store({"file", "fp32", dir.path().string()});
  store.write(Ids{7}, at::ones({1, 100}));
  Ids more(1000);
  std::iota(more.begin(), more.end(), 8);
  const at::Tensor values = at::full({1000, 100}, 2.0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THROW(store.write(more, values), Error);
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(store.has(8));
  EXPECT_TRUE(at::equal(store.read(Ids{7, 8}, meta_of(at::ones({2, 100})), at::kCPU).sum(1),
                        at::tensor({100.0F, 0.0F})));
  store.write(more, values);
  EXPECT_TRUE(at::equal(store.read(more, meta_of(values), at::kCPU), values));
}

TEST(SampleStore, AFolderThatCannotHoldAFileIsNamed) {
  test::TempDir dir;
  test::write_file(dir / "file", "x");
  try {
    SampleStore store({"file", "fp32", (dir / "file" / "below").string()});
    FAIL();
  } catch (const InputError& error) {
    EXPECT_TRUE(
        std::string(error.what()).starts_with((dir / "file" / "below").string() + ": cannot hold a file"))
        << error.what();
  }
}

TEST(SampleStore, TheBytesOfARowAreThoseOfItsFormat) {
  EXPECT_EQ(store_row_bytes({"memory", "fp32", ""}, 65536), 262144U);
  EXPECT_EQ(store_row_bytes({"memory", "bf16", ""}, 65536), 131072U);
  EXPECT_EQ(store_row_bytes({"memory", "quant:8", ""}, 65536), 65544U);
  EXPECT_EQ(store_row_bytes({"memory", "quant:4", ""}, 65536), 32776U);
  EXPECT_EQ(store_row_bytes({"memory", "quant:2", ""}, 65536), 16392U);
  EXPECT_EQ(store_row_bytes({"memory", "quant:2", ""}, 5), 10U) << "the last byte is not full";
}

TEST(AqSgd, RefusesBytesBehindSamplesThatAllComeInFull) {
  const Ids ids = {0, 1};
  const at::Tensor x = at::ones({2, 3});
  const auto link = make_link("topk:0.5", "aq-sgd");
  std::vector<std::byte> space(2 * link->payload_size(meta_of(x)).bound);
  ByteWriter out(space);
  link->make_encoder()->encode(x, {.ids = ids}, out);
  const auto decode = [&](size_t size) {
    ByteReader in(std::span<const std::byte>(space).first(size));
    return link->make_decoder()->decode(in, meta_of(x), {.ids = ids}).tensor;
  };
  EXPECT_TRUE(at::equal(decode(out.used()), x));
  EXPECT_THROW(decode(out.used() + 1), WireError);
}

}  // namespace
}  // namespace strait
