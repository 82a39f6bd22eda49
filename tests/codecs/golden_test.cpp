// One worked frame a codec. The bytes stand in tests/golden/wire/NAME.hex and, explained, in
// docs/wire_format.md or wire_format_field.md; a change of any of the three without the others fails here.

#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "strait/wire/frame.h"
#include "tests/codecs/inputs.h"

namespace strait {
namespace {

struct Example {
  std::string name;
  std::string spec;
  std::vector<int64_t> shape;
  std::vector<float> x;
  std::vector<float> received;
};

std::vector<Example> examples() {
  std::vector<float> sparse(32, 0.25F);
  std::vector<float> kept(32, 0.0F);
  const std::pair<size_t, float> large[] = {{0, 1.0F},  {1, -2.0F}, {3, 3.0F},   {4, -4.0F},
                                            {17, 5.0F}, {22, 6.0F}, {26, -7.0F}, {31, 8.0F}};
  for (const auto& [position, value] : large) sparse[position] = kept[position] = value;
  std::vector<float> spot(32, 0.25F);
  std::vector<float> of_spot(32, 0.0F);
  for (const size_t position : {2U, 9U, 10U, 11U, 17U, 18U, 19U, 26U})
    spot[position] = of_spot[position] = 1.0F;
  std::vector<float> tokens(128, 0.0F);  // 0 to 7 in turn, and a single 8
  for (size_t i = 0; i < 64; ++i) tokens[i] = static_cast<float>(i % 8);
  tokens[64 + 5] = 8;
  std::vector<float> first_alone(12, 0.0F);
  first_alone[0] = 2;
  const float third = 1.0F / 3.0F;  // the mean of 0.5, 0.5 and 0
  const std::vector<float> signs = {2.0F, -2.0F, 2.0F, -third, -third, third};
  return {{"none", "none", {1, 2}, {1.0F, -2.5F}, {1.0F, -2.5F}},
          {"fp16", "fp16", {1, 3}, {1.0F, -2.5F, 0.1F}, {1.0F, -2.5F, 0.0999755859375F}},
          {"bf16", "bf16", {1, 3}, {1.0F, -2.5F, 0.1F}, {1.0F, -2.5F, 0.10009765625F}},
          {"quant",
           "quant:4,scope=sample",
           {2, 3},
           {0.0F, 1.25F, 3.0F, -1.5F, -1.5F, -1.5F},
           {0.0F, 6.0F / 15.0F * 3.0F, 3.0F, -1.5F, -1.5F, -1.5F}},
          {"topk", "topk:0.25,values=fp16", {2, 16}, sparse, kept},
          {"sign", "sign", {2, 3}, {1.0F, -2.0F, 3.0F, -0.5F, -0.5F, 0.0F}, signs},
          {"onebit",
           "onebit",
           {2, 3},
           {1.0F, -2.0F, 3.0F, -0.5F, -0.5F, 0.0F},
           {2.0F, -2.0F, 2.0F, -0.5F, -0.5F, 0.0F}},
          {"qsgd",
           "qsgd:4,scope=sample",
           {2, 3},
           {3.0F, 0.0F, -4.0F, 0.0F, 0.0F, 1.0F},
           {5.0F * (4.0F / 7.0F), 0.0F, -5.0F * (5.0F / 7.0F), 0.0F, 0.0F, 1.0F}},
          {"natural", "natural", {1, 3}, {1.0F, -0.5F, 0.0F}, {1.0F, -0.5F, 0.0F}},
          {"exponential",
           "exponential:3",
           {2, 3},
           {4.0F, -2.0F, 1.0F, 0.0F, 0.5F, -1.0F},
           {4.0F, -2.0F, 1.0F, 0.0F, 0.5F, -1.0F}},
          {"fp8", "fp8:e4m3", {1, 3}, {448.0F, -1.0F, 0.3F}, {448.0F, -1.0F, 0.3125F}},
          {"mx", "mx:e2m1", {1, 3}, {12.0F, -2.0F, 1.0F}, {12.0F, -2.0F, 1.0F}},
          {"fitted",
           "fitted:1,law=laplace",
           {1, 4},
           {1.0F, -1.0F, 1.0F, -1.0F},
           {2.07944155F, -2.07944155F, -2.07944155F, -2.07944155F}},
          {"daq",
           "daq:2,scope=tensor",
           {1, 4},
           {3.0F, -1.0F, 3.0F, -1.0F},
           {1.0F + 2.0F * (1.5F * 0.995686682F), 1.0F - 2.0F * (1.5F * 0.995686682F),
            1.0F + 2.0F * (1.5F * 0.995686682F), 1.0F - 2.0F * (1.5F * 0.995686682F)}},
          {"bounded",
           "bounded:0.2",
           {2, 3},
           {0.0F, 1.0F, 3.0F, 2.0F, 2.0F, 2.0F},
           {0.0F, 1.0F, 3.0F, 2.0F, 2.0F, 2.0F}},
          {"tah", "tah:3,share=0.5", {1, 2, 64}, tokens, tokens},
          {"outliers",
           "outliers:3",
           {2, 4},
           {1.0F, -8.0F, 0.5F, -0.25F, 0.0F, 2.0F, -4.0F, 4.0F},
           {0.875F, -8.0F, 0.625F, -0.125F, 0.5F, 2.0F, -3.5F, 3.5F}},
          {"atomo", "atomo:1", {3, 4}, first_alone, first_alone},
          {"random",
           "random:0.25,values=fp16",
           {2, 8},
           {1, 2, 3, 4, 5, 6, 7, 8, -1, -2, -3, -4, -5, -6, -7, -8},
           {0, 0, 0, 0, 5, 0, 7, 0, 0, 0, -3, 0, 0, -6, 0, 0}},
          {"columns",
           "columns:0.5,values=fp16",
           {2, 4},
           {1, -2, 0.5F, 3, 0, 2, 0.5F, -1},
           {0, -2, 0, 3, 0, 2, 0, -1}},
          {"lowrank",
           "lowrank:1",
           {4, 6},
           {1, 2, 0, -1, 0.5F, 4, -2, -4, 0, 2, -1, -8, 3, 6, 0, -3, 1.5F, 12, 0.5F, 1, 0, -0.5F, 0.25F, 2},
           {0.99999994F, 1.9999999F,  0.0F, -0.99999994F, 0.49999997F,  3.9999998F,
            -1.9999999F, -3.9999998F, 0.0F, 1.9999999F,   -0.99999994F, -7.9999995F,
            2.9999998F,  5.9999995F,  0.0F, -2.9999998F,  1.4999999F,   11.999999F,
            0.49999997F, 0.99999994F, 0.0F, -0.49999997F, 0.24999999F,  1.9999999F}},
          {"topk_interlaced", "topk:0.25,values=fp16,index=interlaced", {1, 4, 8}, spot, of_spot}};
}

/// Sixteen bytes per line, in hex, separated by spaces.
std::string hex_of(std::span<const std::byte> bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += fmt::format("{:02x}{}", std::to_integer<unsigned>(bytes[i]),
                        i % 16 == 15 || i + 1 == bytes.size() ? "\n" : " ");
  }
  return text;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::byte> frame_of(const Codec& codec, const at::Tensor& x) {
  const auto payload = encoded(codec, x);
  std::vector<std::byte> frame(kFrameHeaderSize + payload.size());
  std::ranges::copy(payload, frame.begin() + kFrameHeaderSize);
  seal_frame(frame, {.codec = codec.id(),
                     .link = 0,
                     .boundary = 1,
                     .direction = Direction::gradient,
                     .micro_batch = 2,
                     .sequence = 7});
  return frame;
}

class Golden : public testing::TestWithParam<Example> {};

TEST_P(Golden, FrameFileAndDocumentationAgree) {
  const Example& example = GetParam();
  const auto codec = make_codec(example.spec);
  const at::Tensor x = at::empty(example.shape, at::kFloat);
  std::ranges::copy(example.x, x.data_ptr<float>());
  const auto frame = frame_of(*codec, x);
  const std::string hex = hex_of(frame);
  EXPECT_EQ(read_text("tests/golden/wire/" + example.name + ".hex"), hex);
  const std::string pages = read_text("docs/wire_format.md") + read_text("docs/wire_format_field.md");
  EXPECT_NE(pages.find("```hex\n" + hex + "```\n"), std::string::npos)
      << "no page of the wire format contains\n"
      << hex;
  const Frame parsed = parse_frame(frame);
  EXPECT_EQ(parsed.header.codec, codec->id());
  EXPECT_EQ(values_of(decoded(*codec, parsed.payload, {example.shape})), example.received);
}

TEST(GoldenExamples, EveryCodecHasAnExample) {
  std::vector<std::string> names;
  for (const auto& example : examples()) names.push_back(example.name);
  for (const auto& info : codec_list()) EXPECT_TRUE(std::ranges::count(names, info.name) == 1) << info.name;
}

INSTANTIATE_TEST_SUITE_P(Codecs, Golden, testing::ValuesIn(examples()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace strait
