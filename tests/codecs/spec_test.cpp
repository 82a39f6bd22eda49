#include "strait/codecs/spec.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"

namespace strait {
namespace {

TEST(OperatorSpec, ReadsNameArgumentAndOptions) {
  auto spec = OperatorSpec::parse("codec", "topk:0.1,values=fp16,scope=tensor");
  EXPECT_EQ(spec.name(), "topk");
  EXPECT_EQ(spec.argument("a share"), "0.1");
  EXPECT_EQ(spec.option("scope", "sample"), "tensor");
  EXPECT_EQ(spec.option("values", "fp32"), "fp16");
  EXPECT_EQ(spec.option("index", "auto"), "auto");
  EXPECT_NO_THROW(spec.finish());
}

TEST(OperatorSpec, RejectsWhatNobodyUnderstands) {
  auto spec = OperatorSpec::parse("codec", "quant:4,scop=sample");
  spec.option("scope", "tensor");
  EXPECT_THROW(spec.finish(), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "quant:4,sample"), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "quant:4,=sample"), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "quant:4,a=1,a=2"), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "quant").argument("bits"), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "quant:").argument("bits"), InputError);
  EXPECT_THROW(OperatorSpec::parse("codec", "none:3").finish(), InputError);
}

TEST(OperatorSpec, ADefaultServesWhatTheSpecLeavesOpenAndNobodyNeedUnderstandIt) {
  auto spec = OperatorSpec::parse("feedback", "keep,format=bf16");
  spec.set_default("format", "fp32");
  spec.set_default("fill", "warmup");
  spec.set_default("other", "1");
  EXPECT_EQ(spec.option("format", "fp16"), "bf16");
  EXPECT_EQ(spec.option("fill", "first_visit"), "warmup");
  EXPECT_NO_THROW(spec.finish());
}

TEST(OperatorSpec, ItsTextHasTheDefaultsAndNotWhatIsLeftOut) {
  auto spec = OperatorSpec::parse("feedback", "keep:2,place=file,format=bf16");
  spec.set_default("format", "fp32");
  spec.set_default("fill", "warmup");
  spec.set_default("folder", "/elsewhere");
  EXPECT_EQ(spec.text_without({"place", "folder"}), "keep:2,fill=warmup,format=bf16");
  EXPECT_EQ(OperatorSpec::parse("feedback", "keep").text_without({}), "keep");
}

TEST(OperatorSpec, ComplaintsNameTheKindAndTheText) {
  const auto complaint = [](auto&& use) {
    auto spec = OperatorSpec::parse("feedback", "keep:2,formt=bf16");
    try {
      use(spec);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint([](OperatorSpec& spec) { spec.finish(); }),
            "feedback \"keep:2,formt=bf16\": keep takes nothing behind a colon");
  EXPECT_EQ(complaint([](OperatorSpec& spec) {
              spec.argument("a number");
              spec.option("format", "fp32");
              spec.finish();
            }),
            "feedback \"keep:2,formt=bf16\": keep has no option \"formt\" (did you mean \"format\"?); it has: "
            "format");
  EXPECT_EQ(complaint([](OperatorSpec& spec) { spec.reject("format", "bf8", "fp32 or bf16"); }),
            "feedback \"keep:2,formt=bf16\": format must be fp32 or bf16, not \"bf8\"");
}

}  // namespace
}  // namespace strait
