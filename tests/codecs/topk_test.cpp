#include <ATen/core/ivalue.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/full.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>

#include "strait/codecs/fraction.h"
#include "strait/kernels/index_code.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

/// The definition: sort each group by falling magnitude, equal ones by rising index, keep k.
std::vector<float> plain_topk(const std::vector<float>& x, size_t n, size_t k) {
  std::vector<float> out(x.size(), 0.0F);
  for (size_t begin = 0; begin < x.size(); begin += n) {
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), begin);
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return std::abs(x[i]); });
    for (size_t i = 0; i < k; ++i) out[order[i]] = x[order[i]];
  }
  return out;
}

TEST(Fraction, KeepsDecimalsExact) {
  EXPECT_EQ(Fraction::parse("0.1")->of(10), 1U);
  EXPECT_EQ(Fraction::parse("0.1")->of(65536), 6554U);
  EXPECT_EQ(Fraction::parse("0.3")->of(10), 3U);
  EXPECT_EQ(Fraction::parse("0.7")->of(10), 7U);
  EXPECT_EQ(Fraction::parse("1")->of(7), 7U);
  EXPECT_EQ(Fraction::parse("1.0")->of(4294967295), 4294967295U);
  EXPECT_EQ(Fraction::parse("0.999999999")->of(4294967295), 4294967291U);
  EXPECT_EQ(Fraction::parse("0.000000001")->of(1), 1U);
  for (size_t n = 1; n <= 2000; ++n) {
    for (uint64_t percent = 1; percent <= 100; ++percent) {
      const std::string text =
          percent == 100 ? "1.00" : (percent < 10 ? "0.0" : "0.") + std::to_string(percent);
      ASSERT_EQ(Fraction::parse(text)->of(n), (percent * n + 99) / 100) << text << " of " << n;
    }
  }
}

TEST(Fraction, RefusesEverythingElse) {
  for (const char* text : {"", "0", "0.0", "1.1", "2", "-0.1", "+0.1", ".5", "1.", "0.", "0.1 ", " 0.1", "1e-1",
                           "0,1", "0.0000000001", "00.1", "nan", "0.1.1", "0x1"}) {
    EXPECT_FALSE(Fraction::parse(text)) << text;
  }
}

TEST(TopK, AgreesWithAStableSort) {
  for (const char* share : {"0.000000001", "0.01", "0.1", "0.5", "0.99", "1"}) {
    for (const char* index : {"auto", "bitmap", "rice"}) {
      for (const char* scope : {"sample", "tensor"}) {
        const auto codec = make_codec(std::string("topk:") + share + ",index=" + index + ",scope=" + scope);
        for (const auto& [name, x] : finite_inputs()) {
          if (x.numel() == 0) continue;
          const MessageMeta meta = meta_of(x);
          const size_t n = scope == std::string("sample") ? meta.row_size() : meta.elements();
          const auto expected = plain_topk(values_of(x), n, Fraction::parse(share)->of(n));
          const auto got = values_of(decoded(*codec, encoded(*codec, x), meta));
          ASSERT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
              << codec->spec() << ", " << name;
        }
      }
    }
  }
}

TEST(TopK, KeptValuesGoThroughTheirFormat) {
  const at::Tensor x = normal_tensor({4, 200}, 40);
  const auto kept = values_of(make_codec("topk:0.2")->reconstruct(x, {}));
  const std::pair<const char*, double> formats[] = {
      {"fp16", 0x1p-11}, {"bf16", 0x1p-8}, {"quant:8", 0.02}, {"quant:1", 8.0}};
  for (const auto& [format, tolerance] : formats) {
    const auto codec = make_codec(std::string("topk:0.2,values=") + format);
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    for (size_t i = 0; i < kept.size(); ++i) {
      if (kept[i] == 0) {
        ASSERT_EQ(got[i], 0.0F);
      } else {
        ASSERT_NEAR(got[i], kept[i], std::max(1.0F, std::abs(kept[i])) * tolerance) << format;
      }
    }
  }
}

TEST(TopK, ValuesAreWrittenAsAnotherCodecWritesARow) {
  const at::Tensor x = normal_tensor({3, 200}, 46);
  const MessageContext context{.seed = 3, .step = 9, .first_row = 20};
  const auto topk = make_codec("topk:0.2,values=exponential:3");
  const auto kept = values_of(received("topk:0.2", x, context));
  const auto payload = encoded(*topk, x, context);
  const auto got = values_of(decoded(*topk, payload, meta_of(x), context));
  // Three lists of a scale and 40 codes of three bits end the payload; each is a message of one row.
  const auto seen_alone = make_codec("exponential:3");
  for (size_t row = 0; row < 3; ++row) {
    at::Tensor list = at::empty({1, 40}, at::kFloat);
    std::vector<float> arrived;
    for (size_t i = row * 200; i < (row + 1) * 200; ++i) {
      if (kept[i] == 0) {
        EXPECT_EQ(got[i], 0.0F);
        continue;
      }
      list.data_ptr<float>()[arrived.size()] = kept[i];
      arrived.push_back(got[i]);
    }
    MessageContext own = context;
    own.seed ^= 0x76616c756573;
    own.first_row += row;
    const auto bytes = encoded(*seen_alone, list, own);
    const auto begin = payload.end() - static_cast<ptrdiff_t>((3 - row) * bytes.size());
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), begin)) << row;
    EXPECT_EQ(arrived, values_of(decoded(*seen_alone, bytes, {{1, 40}}, own))) << row;
  }
}

TEST(TopK, BlocksAreRowsWithZerosBehindTheLast) {
  const auto rows = [](const at::Tensor& x, int64_t block) {
    const int64_t d = x.numel() / x.size(0);
    const int64_t size = std::min(block, d);
    const int64_t blocks = (d + size - 1) / size;
    at::Tensor padded = at::zeros({x.size(0), blocks * size});
    padded.narrow(1, 0, d).copy_(x.reshape({x.size(0), d}));
    return padded.reshape({x.size(0) * blocks, size});
  };
  const MessageContext context{.seed = 3, .first_row = 5};
  for (const auto& shape : std::vector<std::vector<int64_t>>{{3, 128}, {2, 7, 11}, {1, 5}, {4, 64}}) {
    const at::Tensor x = normal_tensor(shape, 47);
    for (const std::string options : {"", ",values=quant:2", ",values=exponential:3"}) {
      const auto blocked = make_codec("topk:0.1,scope=block:64" + options);
      const auto plain = make_codec("topk:0.1" + options);
      const at::Tensor blocks = rows(x, 64);
      MessageContext own = context;
      own.first_row *= static_cast<size_t>(blocks.size(0) / x.size(0));
      EXPECT_EQ(encoded(*blocked, x, context), encoded(*plain, blocks, own)) << x.sizes() << options;
      const at::Tensor seen = decoded(*blocked, encoded(*blocked, x, context), meta_of(x), context);
      const at::Tensor expected = plain->reconstruct(blocks, own).reshape({x.size(0), -1});
      EXPECT_TRUE(at::equal(seen, expected.narrow(1, 0, x.numel() / x.size(0)).reshape(shape)))
          << x.sizes() << options;
    }
  }
  for (const char* scope : {"block:0", "block:12", "block:x", "channel"}) {
    EXPECT_THROW(make_codec(std::string("topk:0.1,scope=") + scope), InputError) << scope;
  }
}

TEST(TopK, ValuesNeedACodecThatWritesRowsAlone) {
  for (const char* values : {"topk:0.5", "daq:4", "bounded:0.1", "lowrank:2", "exponential:9"}) {
    EXPECT_THROW(make_codec(std::string("topk:0.1,values=") + values), InputError) << values;
  }
}

TEST(TopK, QuantisedValuesUseTheRangeOfTheirOwnGroup) {
  const at::Tensor x = normal_tensor({3, 50}, 41);
  const auto kept = values_of(make_codec("topk:0.2")->reconstruct(x, {}));
  for (unsigned bits = 1; bits <= 8; ++bits) {
    const auto codec = make_codec("topk:0.2,values=quant:" + std::to_string(bits));
    const auto got = values_of(decoded(*codec, encoded(*codec, x), meta_of(x)));
    for (size_t row = 0; row < 3; ++row) {
      float lo = INFINITY;
      float hi = -INFINITY;
      for (size_t i = row * 50; i < row * 50 + 50; ++i) {
        if (kept[i] == 0) continue;
        lo = std::min(lo, kept[i]);
        hi = std::max(hi, kept[i]);
      }
      const double levels = std::pow(2.0, bits) - 1;
      const double range = static_cast<double>(hi) - lo;
      for (size_t i = row * 50; i < row * 50 + 50; ++i) {
        if (kept[i] == 0) continue;
        const double expected = lo + std::nearbyint((kept[i] - lo) / range * levels) / levels * range;
        ASSERT_NEAR(got[i], expected, 1e-6) << bits;
      }
    }
  }
}

size_t size_with(const std::string& share, const std::string& index, const at::Tensor& x) {
  return encoded(*make_codec("topk:" + share + ",scope=tensor,index=" + index), x).size();
}

TEST(TopK, AutomaticTakesAShortIndexSet) {
  for (const char* share : {"0.01", "0.1", "0.25", "0.5", "0.75", "0.99"}) {
    for (const auto& [name, x] : finite_inputs()) {
      const size_t got = size_with(share, "auto", x);
      if (got == size_with(share, "interlaced", x)) continue;
      EXPECT_EQ(got, std::min(size_with(share, "bitmap", x), size_with(share, "rice", x)))
          << share << ", " << name;
    }
  }
}

TEST(TopK, AutomaticKnowsPicturesFromNoise) {
  const at::Tensor noise = normal_tensor({1, 16, 32, 32}, 45);
  const at::Tensor picture = at::avg_pool2d(normal_tensor({1, 16, 36, 36}, 46), {5, 5}, {1, 1});
  for (const char* share : {"0.05", "0.1", "0.3", "0.5"}) {
    EXPECT_EQ(size_with(share, "auto", noise),
              std::min(size_with(share, "bitmap", noise), size_with(share, "rice", noise)));
    EXPECT_EQ(size_with(share, "auto", picture), size_with(share, "interlaced", picture));
    EXPECT_LT(size_with(share, "auto", picture), size_with(share, "rice", picture));
  }
}

TEST(TopK, RiceIsCloseToTheEntropyOfTheSet) {
  const at::Tensor x = normal_tensor({1, 100000}, 42);
  for (const double share : {0.01, 0.05, 0.1}) {
    const double values = 4 * std::ceil(share * 100000);
    const auto codec = make_codec("topk:" + std::to_string(share) + ",index=rice");
    const double bits = 8 * (static_cast<double>(encoded(*codec, x).size()) - values) / (values / 4);
    const double entropy = -(std::log2(share) + (1 - share) / share * std::log2(1 - share));
    EXPECT_GT(bits, entropy * 0.99);
    EXPECT_LT(bits, entropy * 1.05);
  }
}

class DamagedTopK : public testing::Test {
 protected:
  // Two groups of ten elements, k = 3, so r = 1: codes at 0, lengths at 2, then the sets and 24 bytes of
  // values.
  std::vector<std::byte> good(const std::string& index) {
    codec_ = make_codec("topk:0.3,index=" + index);
    return encoded(*codec_, normal_tensor({2, 10}, 43));
  }
  void refuses(std::vector<std::byte> bytes) { EXPECT_THROW(decoded(*codec_, bytes, {{2, 10}}), WireError); }

  std::shared_ptr<const Codec> codec_;
};

TEST_F(DamagedTopK, CodesAndLengthsAreChecked) {
  for (const char* index : {"auto", "bitmap", "rice", "interlaced"}) {
    const auto bytes = good(index);
    ASSERT_NO_THROW(decoded(*codec_, bytes, {{2, 10}}));
    for (int code = 0; code < 256; ++code) {
      auto bad = bytes;
      bad[1] = static_cast<std::byte>(code);
      if (bad[1] != bytes[1]) refuses(bad);
    }
    for (int length = 0; length < 256; ++length) {
      for (const size_t at : {2U, 5U, 6U, 9U}) {
        auto bad = bytes;
        bad[at] = static_cast<std::byte>(length);
        if (bad[at] != bytes[at]) refuses(bad);
      }
    }
  }
}

TEST_F(DamagedTopK, BitmapsAreChecked) {
  const auto bytes = good("bitmap");
  for (size_t bit = 0; bit < 32; ++bit) {
    auto bad = bytes;
    bad[10 + bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    refuses(bad);  // one bit more or fewer than k, or one behind the end
  }
}

TEST_F(DamagedTopK, ValuesAreChecked) {
  auto bytes = good("bitmap");
  const float infinity = INFINITY;
  std::memcpy(bytes.data() + bytes.size() - 4, &infinity, 4);
  refuses(bytes);
  codec_ = make_codec("topk:0.3,values=fp16");
  bytes = encoded(*codec_, normal_tensor({2, 10}, 44));
  bytes.back() = std::byte{0x7c};
  refuses(bytes);
  codec_ = make_codec("topk:0.3,values=quant:2");
  bytes = encoded(*codec_, normal_tensor({2, 10}, 44));
  bytes.back() |= std::byte{0x40};
  refuses(bytes);
}

TEST(TopK, SpecsThatMeanNothingAreRefused) {
  for (const char* spec :
       {"topk", "topk:", "topk:0", "topk:1.5", "topk:10%", "topk:0.1,index=raw", "topk:0.1,values=quant",
        "topk:0.1,values=quant:9", "topk:0.1,values=quant:12", "topk:0.1,values=fp64", "topk:0.1,indx=rice"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
