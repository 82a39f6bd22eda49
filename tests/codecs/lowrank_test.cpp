// lowrank against a projection in float64, by LibTorch's QR decomposition.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "strait/base/text.h"
#include "strait/codecs/quant_group.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

at::Tensor seen_of(const std::string& spec, const at::Tensor& x, const MessageContext& context = {}) {
  const auto codec = make_codec(spec);
  return decoded(*codec, encoded(*codec, x, context), meta_of(x), context);
}

/// The first vectors: element i of vector j is 2 u - 1, u the dither of index j m + i.
at::Tensor drawn_start(int64_t columns, int64_t rank, const MessageContext& context) {
  const kernels::Dither draws = make_dither(context, {});
  at::Tensor start = at::empty({columns, rank}, at::kDouble);
  for (int64_t j = 0; j < rank; ++j) {
    for (int64_t i = 0; i < columns; ++i) {
      start[i][j] = 2 * kernels::dither_at(draws, static_cast<uint64_t>(j * columns + i)) - 1;
    }
  }
  return start;
}

/// P P^T M, where P spans M Q.
at::Tensor projected(const at::Tensor& matrix, const at::Tensor& start) {
  const at::Tensor m = matrix.to(at::kDouble);
  const at::Tensor p = std::get<0>(at::linalg_qr(m.mm(start)));
  return p.mm(p.t().mm(m));
}

void expect_near(const at::Tensor& seen, const at::Tensor& expected, const at::Tensor& x, double tolerance) {
  const double error =
      (seen.to(at::kDouble).view(-1) - expected.reshape(-1).narrow(0, 0, x.numel())).norm().item<double>();
  EXPECT_LE(error, tolerance * x.to(at::kDouble).norm().item<double>());
}

TEST(LowRankCodec, ProjectsOnWhatOneStepOfAPowerIterationFinds) {
  const MessageContext context{.seed = 4, .boundary = 2, .direction = Direction::gradient, .step = 9};
  struct Message {
    std::vector<int64_t> shape;
    int64_t rows;
    int64_t columns;
  };
  for (const auto& [shape, rows, columns] : std::vector<Message>{
           {{30, 50}, 30, 50}, {{4, 7, 19}, 28, 19}, {{3, 5, 6, 7}, 15, 42}, {{2, 3, 2, 3, 17}, 36, 17}}) {
    const at::Tensor x = normal_tensor(shape, 1);
    for (const int64_t rank : {1, 2, 5}) {
      const at::Tensor expected = projected(x.view({rows, columns}), drawn_start(columns, rank, context));
      expect_near(seen_of("lowrank:" + std::to_string(rank), x, context), expected, x, 1e-5);
    }
  }
}

TEST(LowRankCodec, ASquareTakesTheElementsAsTheyLie) {
  for (const int64_t count : {50, 1000, 1024, 1025}) {
    const at::Tensor x = normal_tensor({1, count}, 2);
    const auto columns = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
    const int64_t rows = (count + columns - 1) / columns;
    const at::Tensor square = at::constant_pad_nd(x, {0, rows * columns - count}).view({rows, columns});
    const at::Tensor expected = projected(square, drawn_start(columns, 2, {}));
    expect_near(seen_of("lowrank:2,matrix=square", x), expected, x, 1e-5);
    EXPECT_EQ(make_codec("lowrank:2,matrix=square")->payload_size(meta_of(x)).bound,
              static_cast<size_t>(8 * (rows + columns)));
  }
}

TEST(LowRankCodec, IsExactFromTheRankOfTheMessageOn) {
  const at::Tensor x = at::outer(normal_tensor({60}, 3), normal_tensor({40}, 4)) +
                       at::outer(normal_tensor({60}, 5), normal_tensor({40}, 6)).mul(0.01);
  for (const double scale : {1.0, 1e-30, 1e36, 1e-41}) {
    const at::Tensor scaled = x.mul(scale);
    const double tolerance = scale == 1e-41 ? 1e-3 : 3e-6;  // denormal numbers have few digits
    for (const char* spec : {"lowrank:2", "lowrank:3", "lowrank:8"}) {
      expect_near(seen_of(spec, scaled), scaled, scaled, tolerance);
    }
  }
  const at::Tensor zero = at::zeros({60, 40});
  EXPECT_TRUE(same_bits(seen_of("lowrank:4", zero), zero));
}

TEST(LowRankCodec, SendsTwoFactors) {
  const auto bytes = [](const char* spec, std::vector<int64_t> shape) {
    const auto [bound, exact] = make_codec(spec)->payload_size({std::move(shape)});
    EXPECT_TRUE(exact);
    return bound;
  };
  EXPECT_EQ(bytes("lowrank:4", {100, 64, 32, 32}), 4U * 4 * (6400 + 1024));
  EXPECT_EQ(bytes("lowrank:2", {8, 1024, 768}), 4U * 2 * (8192 + 768));
  EXPECT_EQ(bytes("lowrank:1,warm=yes", {8, 1024, 768}), 4U * (8192 + 768));
}

TEST(LowRankCodec, AVectorIsASquare) {
  const at::Tensor x = normal_tensor({1, 390}, 5);
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{1, 390}, {390, 1}, {390}, {1, 1, 39, 10}}) {
    const at::Tensor of_shape = x.view(shape);
    EXPECT_TRUE(
        at::equal(seen_of("lowrank:2", of_shape).view({-1}), seen_of("lowrank:2,matrix=square", x).view({-1})))
        << shape_text(shape);
  }
}

TEST(LowRankCodec, RefusesWhatItWouldNotShorten) {
  for (const auto& [spec, shape, complaint] :
       std::vector<std::tuple<const char*, std::vector<int64_t>, const char*>>{
           {"lowrank:4",
            {3, 17},
            "codec lowrank:4 takes a message of shape [3, 17] as a matrix of 3 rows and 17 columns, of which "
            "it would "
            "send 320 bytes, not fewer than the message's 204"},
           {"lowrank:1",
            {1, 3},
            "codec lowrank:1 takes a message of shape [1, 3] as a matrix of 2 rows and 2 columns, of which it "
            "would send 16 bytes, not fewer than the message's 12"}}) {
    try {
      make_codec(spec)->payload_size({shape});
      FAIL() << spec;
    } catch (const InputError& error) {
      EXPECT_STREQ(error.what(), complaint);
    }
  }
}

TEST(LowRankCodec, ThreadsChangeNoBit) {
  const at::Tensor x = normal_tensor({2000, 301}, 7);
  const int threads = at::get_num_threads();
  std::vector<std::vector<std::byte>> payloads;
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    payloads.push_back(encoded(*make_codec("lowrank:3"), x));
  }
  at::set_num_threads(threads);
  EXPECT_EQ(payloads[0], payloads[1]);
  EXPECT_EQ(payloads[0], payloads[2]);
}

TEST(LowRankCodec, RefusesFactorsThatNoTensorGives) {
  const MessageMeta meta{{6, 40}};
  const auto with = [&](size_t number, float value) {
    auto payload = encoded(*make_codec("lowrank:2"), normal_tensor(meta.shape, 8));
    std::memcpy(payload.data() + number * sizeof value, &value, sizeof value);
    return payload;
  };
  for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
    for (const size_t number : {0, 12, 91}) {
      EXPECT_THROW(decoded(*make_codec("lowrank:2"), with(number, bad), meta), WireError) << number;
    }
  }
  EXPECT_THROW(decoded(*make_codec("lowrank:2"), with(3, 3e38F), meta), WireError)
      << "the product is too large";
}

TEST(LowRankCodec, RefusesWhatItDoesNotKnow) {
  for (const char* spec : {"lowrank", "lowrank:0", "lowrank:1.5", "lowrank:2,matrix=rows", "lowrank:2,warm=1",
                           "lowrank:2,values=fp16"}) {
    EXPECT_THROW(make_codec(spec), InputError) << spec;
  }
}

}  // namespace
}  // namespace strait
