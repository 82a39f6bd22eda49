#include "strait/codecs/spec.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"

namespace strait {
namespace {

TEST(CodecSpec, ReadsNameArgumentAndOptions) {
  auto spec = CodecSpec::parse("topk:0.1,values=fp16,scope=tensor");
  EXPECT_EQ(spec.name(), "topk");
  EXPECT_EQ(spec.argument("a share"), "0.1");
  EXPECT_EQ(spec.option("scope", "sample"), "tensor");
  EXPECT_EQ(spec.option("values", "fp32"), "fp16");
  EXPECT_EQ(spec.option("index", "auto"), "auto");
  EXPECT_NO_THROW(spec.finish());
}

TEST(CodecSpec, RejectsWhatNobodyUnderstands) {
  auto spec = CodecSpec::parse("quant:4,scop=sample");
  spec.option("scope", "tensor");
  EXPECT_THROW(spec.finish(), InputError);
  EXPECT_THROW(CodecSpec::parse("quant:4,sample"), InputError);
  EXPECT_THROW(CodecSpec::parse("quant:4,=sample"), InputError);
  EXPECT_THROW(CodecSpec::parse("quant:4,a=1,a=2"), InputError);
  EXPECT_THROW(CodecSpec::parse("quant").argument("bits"), InputError);
  EXPECT_THROW(CodecSpec::parse("quant:").argument("bits"), InputError);
  EXPECT_THROW(CodecSpec::parse("none:3").no_argument(), InputError);
}

}  // namespace
}  // namespace strait
