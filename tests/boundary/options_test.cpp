#include "strait/boundary/options.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"

namespace strait {
namespace {

std::string complaint(const LinkOptions& activations, const LinkOptions& gradients, int micro_batches = 1,
                      bool reuse_indices = false) {
  CompressionOptions options;
  options.activations = activations;
  options.gradients = gradients;
  options.reuse_indices = reuse_indices;
  try {
    check(options, micro_batches);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CompressionOptions, WhatFitsTogetherIsTaken) {
  EXPECT_EQ(complaint({}, {}), "");
  EXPECT_EQ(complaint({"quant:4", "ef21"}, {"quant:8", "ef"}), "");
  EXPECT_EQ(complaint({"topk:0.1", "ef-mixed"}, {"topk:0.1", "ef-mixed"}, 4), "");
  EXPECT_EQ(complaint({"quant:4", "aq-sgd"}, {"quant:8", "none"}, 4), "");
  EXPECT_EQ(complaint({"topk:0.1", "ef21"}, {"topk:0.10,values=fp16", "none"}, 4, true), "");
}

TEST(CompressionOptions, EveryContradictionIsNamed) {
  EXPECT_EQ(complaint({}, {"topk:0.1", "aq-sgd"}),
            "compression.gradients.feedback: expected a scheme for gradients, found \"aq-sgd\", which keeps "
            "activations");
  EXPECT_EQ(complaint({"fp16", "ef-mixed"}, {}),
            "compression.activations: feedback \"ef-mixed\" needs a codec that selects, such as topk:0.1, not "
            "\"fp16\"");
  EXPECT_EQ(
      complaint({}, {"quant:4", "ef"}, 2),
      "compression.gradients: feedback \"ef\" with 2 micro-batches expects a codec of scope sample, found "
      "\"quant:4\"");
  EXPECT_EQ(
      complaint({"quant:4", "none"}, {"topk:0.1", "none"}, 1, true),
      "compression.activations.codec: with reuse_indices expected a codec that selects, found \"quant:4\"");
  for (const char* other : {"topk:0.2", "topk:0.1,scope=tensor", "fp16"}) {
    EXPECT_EQ(
        complaint({"topk:0.1", "none"}, {other, "none"}, 1, true),
        std::string(
            "compression.gradients.codec: with reuse_indices expected a codec that selects the same share "
            "and scope as the activations', found \"") +
            other + "\"");
  }
  EXPECT_EQ(complaint({"topk:0.1", "aq-sgd"}, {"topk:0.1", "none"}, 1, true),
            "compression.activations.feedback: with reuse_indices expected one of: none, ef, ef21, "
            "found \"aq-sgd\"");
  EXPECT_EQ(complaint({"topk:0.1", "none"}, {"topk:0.1", "ef"}, 1, true),
            "compression.gradients.feedback: with reuse_indices expected none, found \"ef\"");
}

TEST(CompressionOptions, AWarmUpThatFillsBuffersIsNeeded) {
  CompressionOptions options;
  options.activations = {"quant:4", "aq-sgd"};
  options.store.fill = "warmup";
  const auto complaint = [&] {
    try {
      check(options, 1);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(complaint(), "compression.store.fill: \"warmup\" expects compression.start_epoch >= 1, found 0");
  options.start_epoch = 2;
  EXPECT_EQ(complaint(), "");
  options.start_from = "runs/none";
  EXPECT_EQ(complaint(),
            "compression.store.fill: \"warmup\" expects a run that makes the epochs before "
            "compression.start_epoch itself, found compression.start_from \"runs/none\"");
}

TEST(CompressionOptions, WhetherALinkKeepsSamplesIsItsProperty) {
  for (const auto& feedback : {"none", "ef", "ef21", "aq-sgd"}) {
    CompressionOptions options;
    options.activations = {"topk:0.1", feedback};
    EXPECT_EQ(keeps_samples(options), feedback == std::string("aq-sgd")) << feedback;
  }
}

TEST(CompressionOptions, ReplicasTakeFeedbackForOneMessageAStep) {
  CompressionOptions options;
  for (const char* feedback : {"none", "ef", "ef21"}) {
    options.replicas = {"topk:0.1", feedback};
    EXPECT_NO_THROW(check(options, 4)) << feedback;
  }
  for (const char* feedback : {"ef-mixed", "aq-sgd"}) {
    options.replicas = {"topk:0.1", feedback};
    EXPECT_THROW(check(options, 4), InputError) << feedback;
  }
}

}  // namespace
}  // namespace strait
