#include "strait/boundary/options.h"

#include <gtest/gtest.h>

#include "strait/base/error.h"
#include "strait/boundary/boundary.h"
#include "tests/support/errors.h"

namespace strait {
namespace {

const std::vector<std::string> kCuts = {"layer1", "layer2", "layer3"};

std::string error_in(const CompressionOptions& options, const std::vector<std::string>& cuts = {},
                     int micro_batches = 1) {
  return test::error_of<InputError>([&] { check(options, cuts, micro_batches); });
}

std::string complaint(const LinkOptions& activations, const LinkOptions& gradients, int micro_batches = 1,
                      bool reuse_indices = false) {
  CompressionOptions options;
  options.activations = activations;
  options.gradients = gradients;
  options.reuse_indices = reuse_indices;
  return error_in(options, {}, micro_batches);
}

TEST(CompressionOptions, WhatFitsTogetherIsTaken) {
  EXPECT_EQ(complaint({}, {}), "");
  EXPECT_EQ(complaint({"quant:4", "ef21"}, {"quant:8", "ef"}), "");
  EXPECT_EQ(complaint({"topk:0.1", "ef-mixed"}, {"topk:0.1", "ef-mixed"}, 4), "");
  EXPECT_EQ(complaint({"quant:4", "aq-sgd"}, {"quant:8", "none"}, 4), "");
  EXPECT_EQ(complaint({"topk:0.1", "ef21"}, {"topk:0.10,values=fp16", "none"}, 4, true), "");
  EXPECT_EQ(complaint({"topk:0.1", "ef21,slots=sample"}, {"topk:0.1", "none"}, 4, true), "");
  EXPECT_EQ(complaint({"quant:4", "diana:0.5,slots=sample"}, {"quant:4", "ef,slots=sample"}, 4), "");
  EXPECT_EQ(complaint({"random:0.1", "ef"}, {"random:0.1,values=fp16", "none"}, 4, true), "");
}

TEST(CompressionOptions, EveryContradictionIsNamed) {
  EXPECT_EQ(complaint({}, {"topk:0.1", "aq-sgd"}),
            "compression.gradients.feedback: expected a scheme for gradients, found \"aq-sgd\", which keeps "
            "activations");
  EXPECT_EQ(complaint({"fp16", "ef-mixed"}, {}),
            "compression.activations: feedback \"ef-mixed\" needs a codec that selects the largest elements, "
            "such as topk:0.1, not "
            "\"fp16\"");
  EXPECT_EQ(
      complaint({}, {"quant:4", "ef"}, 2),
      "compression.gradients: feedback \"ef\" with 2 micro-batches expects a codec of scope sample, found "
      "\"quant:4\"");
  EXPECT_EQ(
      complaint({"quant:4", "none"}, {"topk:0.1", "none"}, 1, true),
      "compression.activations.codec: with reuse_indices expected a codec that selects, found \"quant:4\"");
  for (const char* other : {"topk:0.2", "topk:0.1,scope=tensor", "random:0.1", "fp16"}) {
    EXPECT_EQ(
        complaint({"topk:0.1", "none"}, {other, "none"}, 1, true),
        std::string(
            "compression.gradients.codec: with reuse_indices expected a codec that selects the same share "
            "and scope as the activations', by the same operator, found \"") +
            other + "\"");
  }
  EXPECT_EQ(
      complaint({"topk:0.1", "aq-sgd"}, {"topk:0.1", "none"}, 1, true),
      "compression.activations.feedback: with reuse_indices expected one of: none, ef, ef21, diana, ef21-sgdm, "
      "found \"aq-sgd\"");
  EXPECT_EQ(complaint({"topk:0.1", "none"}, {"topk:0.1", "ef"}, 1, true),
            "compression.gradients.feedback: with reuse_indices expected none, found \"ef\"");
}

TEST(CompressionOptions, AWarmUpThatFillsBuffersIsNeeded) {
  CompressionOptions options;
  options.activations = {"quant:4", "aq-sgd"};
  options.store.fill = "warmup";
  EXPECT_EQ(error_in(options),
            "compression.store.fill: \"warmup\" expects compression.start_epoch >= 1, found 0");
  options.start_epoch = 2;
  EXPECT_EQ(error_in(options), "");
  options.start_from = "runs/none";
  EXPECT_EQ(error_in(options),
            "compression.store.fill: \"warmup\" expects a run that makes the epochs before "
            "compression.start_epoch itself, found compression.start_from \"runs/none\"");
}

TEST(CompressionOptions, CompressionEndsAfterItsStart) {
  CompressionOptions options;
  EXPECT_TRUE(options.is_on_in(0));
  options.start_epoch = 1;
  options.end_epoch = 3;
  EXPECT_FALSE(options.is_on_in(0));
  EXPECT_TRUE(options.is_on_in(1));
  EXPECT_TRUE(options.is_on_in(2));
  EXPECT_FALSE(options.is_on_in(3));
  check(options, {}, 1);
  options.end_epoch = 1;
  EXPECT_EQ(error_in(options),
            "compression.end_epoch: expected 0, or more than compression.start_epoch = 1, found 1");
}

TEST(CompressionOptions, AStoreTakesWhatItsSpecLeavesOpenFromTheTable) {
  CompressionOptions options;
  options.store = {"file", "bf16", "/tmp", "warmup"};
  options.activations = {"quant:4", "aq-sgd"};
  options.boundaries = {{"layer2", {.codec = {}, .feedback = "aq-sgd,format=quant:8"}, {}},
                        {"layer3", {.codec = {}, .feedback = "ef"}, {}}};
  const BoundaryLinks first = links_of(options, "layer1");
  ASSERT_NE(first.activations->store(), nullptr);
  EXPECT_EQ(*first.activations->store(), options.store);
  EXPECT_EQ(first.gradients->store(), nullptr);
  const BoundaryLinks second = links_of(options, "layer2");
  EXPECT_EQ(*second.activations->store(), (StoreOptions{"file", "quant:8", "/tmp", "warmup"}));
  EXPECT_EQ(links_of(options, "layer3").activations->store(), nullptr);
}

TEST(CompressionOptions, OptionsOfFeedbackAreChecked) {
  const auto complaint = [](const char* feedback) {
    CompressionOptions options;
    options.activations = {"quant:4", feedback};
    return error_in(options);
  };
  EXPECT_EQ(complaint("aq-sgd,format=bf16,fill=first_visit"), "");
  EXPECT_EQ(complaint("aq-sgd,fill=warmup"),
            "compression.activations.feedback: \"warmup\" expects compression.start_epoch >= 1, found 0");
  EXPECT_EQ(complaint("aq-sgd,place=file"),
            "compression.activations.feedback: expected place and folder in compression.store, found "
            "\"aq-sgd,place=file\"");
  EXPECT_EQ(
      complaint("aq-sgd,format=fp16"),
      "compression.activations: feedback \"aq-sgd,format=fp16\": format must be one of: fp32, bf16, quant:8, "
      "quant:4, quant:2, not \"fp16\"");
  EXPECT_EQ(complaint("aq-sgd:3"),
            "compression.activations: feedback \"aq-sgd:3\": aq-sgd takes nothing behind a colon");
  EXPECT_EQ(complaint("ef:0.5"), "");
  EXPECT_EQ(
      complaint("ef:2"),
      "compression.activations: feedback \"ef:2\": beta must be a decimal above 0 and at most 1, not \"2\"");
  EXPECT_EQ(complaint("ef,format=fp32"),
            "compression.activations: feedback \"ef,format=fp32\": ef has no option \"format\"; it has: decay, "
            "slots");
}

TEST(CompressionOptions, TheStoreOfGradientsIsCheckedToo) {
  CompressionOptions options;
  options.gradients = {"quant:4", "ef21,slots=sample,place=file"};
  EXPECT_EQ(error_in(options),
            "compression.gradients.feedback: expected place and folder in compression.store, found "
            "\"ef21,slots=sample,place=file\"");
}

TEST(CompressionOptions, WhetherALinkKeepsSamplesIsItsProperty) {
  for (const std::string feedback : {"none", "ef", "ef21", "ef21,slots=sample", "aq-sgd"}) {
    const bool keeps = feedback == "aq-sgd" || feedback == "ef21,slots=sample";
    CompressionOptions options;
    options.activations = {"topk:0.1", feedback};
    EXPECT_EQ(keeps_samples(options, kCuts), keeps) << feedback;
    EXPECT_EQ(has_feedback(options, kCuts), feedback != "none") << feedback;
    CompressionOptions backward;
    backward.gradients = {"topk:0.1", feedback};
    EXPECT_EQ(keeps_samples(backward, kCuts), keeps) << feedback;
    EXPECT_FALSE(has_feedback(backward, kCuts)) << feedback;
  }
}

/// Of options with these entries, activations topk:0.1 with ef and gradients quant:8 everywhere else.
std::string complaint_about(std::vector<OwnBoundaryOptions> boundaries, int micro_batches = 1,
                            bool reuse_indices = false) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "ef"};
  options.gradients = reuse_indices ? LinkOptions{"topk:0.1", "none"} : LinkOptions{"quant:8", "none"};
  options.boundaries = std::move(boundaries);
  options.reuse_indices = reuse_indices;
  return error_in(options, kCuts, micro_batches);
}

TEST(CompressionOptions, ABoundaryInheritsWhatItDoesNotSet) {
  CompressionOptions options;
  options.activations = {"topk:0.1", "ef"};
  options.gradients = {"quant:8", "ef21"};
  options.boundaries = {{"layer2", {.codec = "fp16", .feedback = {}}, {}},
                        {"layer3", {.codec = {}, .feedback = "none"}, {"topk:0.5", "ef"}}};
  const auto expect = [&](const char* boundary, const LinkOptions& activations, const LinkOptions& gradients) {
    EXPECT_EQ(options.at(boundary), (BoundaryScheme{activations, gradients})) << boundary;
    const BoundaryLinks links = links_of(options, boundary);
    EXPECT_EQ(links.activations->codec().spec(), activations.codec);
    EXPECT_EQ(links.activations->id(), make_link(activations.codec, activations.feedback)->id());
    EXPECT_EQ(links.gradients->codec().spec(), gradients.codec);
    EXPECT_EQ(links.gradients->id(), make_link(gradients.codec, gradients.feedback)->id());
  };
  expect("layer1", {"topk:0.1", "ef"}, {"quant:8", "ef21"});
  expect("layer2", {"fp16", "ef"}, {"quant:8", "ef21"});
  expect("layer3", {"topk:0.1", "none"}, {"topk:0.5", "ef"});
}

TEST(CompressionOptions, EveryContradictionOfABoundaryNamesItsKey) {
  EXPECT_EQ(complaint_about({{"layer2", {"quant:4", "none"}, {}}, {"layer1", {}, {"topk:1", {}}}}, 4), "");
  EXPECT_EQ(
      complaint_about({{"layer2", {}, {.codec = "fp16", .feedback = {}}}, {"layr3", {"fp16", {}}, {}}}),
      "compression.boundaries[1].name: expected one of model.cuts, which are layer1, layer2, layer3; found "
      "\"layr3\" (did you mean \"layer3\"?)");
  EXPECT_EQ(complaint_about(
                {{"layer2", {"fp16", {}}, {}}, {"layer1", {"fp16", {}}, {}}, {"layer2", {"fp16", {}}, {}}}),
            "compression.boundaries[2].name: expected each boundary once, found \"layer2\" twice");
  EXPECT_EQ(complaint_about({{"layer2", {}, {}}}),
            "compression.boundaries[0]: expected a codec or feedback of activations or gradients, found none");
  EXPECT_EQ(complaint_about({{"layer2", {"fp16", "ef-mixed"}, {}}}),
            "compression.boundaries[0].activations: feedback \"ef-mixed\" needs a codec that selects the "
            "largest elements, such as "
            "topk:0.1, not \"fp16\"");
  EXPECT_EQ(
      complaint_about({{"layer2", {.codec = "quant:4", .feedback = {}}, {}}}, 2),
      "compression.boundaries[0].activations: feedback \"ef\" with 2 micro-batches expects a codec of scope "
      "sample, found \"quant:4\"");
  EXPECT_EQ(
      complaint_about({{"layer2", {}, {.codec = {}, .feedback = "aq-sgd"}}}),
      "compression.boundaries[0].gradients.feedback: expected a scheme for gradients, found \"aq-sgd\", which "
      "keeps activations");
  EXPECT_EQ(complaint_about({{"layer2", {"topk:0.2", {}}, {"topk:0.2", {}}}}, 1, true), "");
  EXPECT_EQ(
      complaint_about({{"layer2", {"topk:0.2", {}}, {}}}, 1, true),
      "compression.boundaries[0].gradients.codec: with reuse_indices expected a codec that selects the same "
      "share and scope as the activations', by the same operator, found \"topk:0.1\"");
  EXPECT_EQ(complaint_about({{"layer2", {}, {.codec = {}, .feedback = "ef"}}}, 1, true),
            "compression.boundaries[0].gradients.feedback: with reuse_indices expected none, found \"ef\"");
}

TEST(CompressionOptions, PropertiesAreThoseOfAnyBoundary) {
  CompressionOptions options;
  const std::vector<std::string> one = {"layer2"};
  const auto properties = [&](const std::vector<std::string>& cuts) {
    return std::vector<bool>{compresses_activations(options, cuts), keeps_samples(options, cuts),
                             keeps_rows(options, cuts)};
  };
  EXPECT_EQ(properties(kCuts), (std::vector<bool>{false, false, false}));
  options.boundaries = {{"layer2", {"topk:0.5", "aq-sgd"}, {}}};
  EXPECT_EQ(properties(kCuts), (std::vector<bool>{true, true, false}));
  options.activations = {"quant:4", "ef21"};
  EXPECT_EQ(properties(kCuts), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(properties(one), (std::vector<bool>{true, true, false})) << "no other boundary has the ef21";
  options.boundaries = {{"layer2", {"none", "none"}, {}}};
  EXPECT_EQ(properties(one), (std::vector<bool>{false, false, false}));
}

TEST(CompressionOptions, StateOfClassesTakesOneMicroBatch) {
  CompressionOptions options;
  options.gradients = {"topk:0.1", "ef,slots=class"};
  EXPECT_TRUE(keeps_classes(options, kCuts));
  EXPECT_FALSE(keeps_samples(options, kCuts));
  EXPECT_FALSE(keeps_classes(CompressionOptions(), kCuts));
  EXPECT_EQ(complaint({"topk:0.1", "none"}, {"topk:0.1", "ef,slots=class"}, 1), "");
  EXPECT_EQ(complaint({"topk:0.1", "none"}, {"topk:0.1", "ef,slots=class"}, 2),
            "compression.gradients: feedback \"ef,slots=class\" changes with every message and expects "
            "pipeline.micro_batches = 1, found 2");
}

TEST(CompressionOptions, ReplicasTakeFeedbackForOneMessageAStep) {
  CompressionOptions options;
  for (const char* feedback : {"none", "ef", "ef21", "diana:0.5", "ef21-sgdm:0.1", "marina:0.1"}) {
    options.replicas = {"topk:0.1", feedback};
    EXPECT_NO_THROW(check(options, {}, 4)) << feedback;
  }
  options.replicas = {"topk:0.05,scope=block:4096,values=quant:2", "ef,decay=0.95"};
  EXPECT_NO_THROW(check(options, {}, 4));
  for (const char* feedback : {"ef-mixed", "aq-sgd", "ef21,slots=sample", "ef21,slots=class"}) {
    options.replicas = {"topk:0.1", feedback};
    EXPECT_THROW(check(options, {}, 4), InputError) << feedback;
  }
}

TEST(CompressionOptions, ABatchThatCrossesTwiceMeetsNoState) {
  const auto complaint_of = [](const LinkOptions& activations, const OwnLinkOptions& of_layer2) {
    CompressionOptions options;
    options.activations = activations;
    if (of_layer2 != OwnLinkOptions()) options.boundaries = {{"layer2", {}, of_layer2}};
    options.replicas = {"topk:0.1", "marina:0.1"};
    return error_in(options, kCuts);
  };
  const std::string line =
      "compression.replicas.feedback: \"marina:0.1\" takes every batch over the boundaries twice, so that "
      "their "
      "links are expected to keep nothing from message to message; ";
  EXPECT_EQ(complaint_of({"quant:4,rounding=stochastic", "none"}, {"topk:0.1", {}}), "");
  EXPECT_EQ(complaint_of({"lowrank:2", "none"}, {}), "");
  EXPECT_EQ(complaint_of({"topk:0.1", "ef21"}, {}),
            line + "compression.activations of boundary layer1 is codec \"topk:0.1\", feedback \"ef21\"");
  EXPECT_EQ(complaint_of({}, {"topk:0.1", "ef"}),
            line + "compression.gradients of boundary layer2 is codec \"topk:0.1\", feedback \"ef\"");
  EXPECT_EQ(
      complaint_of({"lowrank:2,warm=yes", "none"}, {}),
      line + "compression.activations of boundary layer1 is codec \"lowrank:2,warm=yes\", feedback \"none\"");
}

TEST(CompressionOptions, OnlyReplicasHaveGradientsAtTheWeightsBefore) {
  const std::string line =
      "expected feedback that needs its message alone; this one needs gradients at the weights of the step "
      "before, "
      "which are there for compression.replicas of a training";
  EXPECT_EQ(complaint({"topk:0.1", "marina:0.1"}, {"none", "none"}, 1),
            "compression.activations.feedback: " + line);
  EXPECT_EQ(complaint({"none", "none"}, {"topk:0.1", "marina:1"}, 1),
            "compression.gradients.feedback: " + line);
  CompressionOptions options;
  options.gradients = {"topk:0.1", "marina:0.1"};
  EXPECT_THROW(links_of(options, "layer1"), InputError);
  const auto link = make_link("topk:0.1", "marina:0.1");
  EXPECT_THROW(Boundary("layer1", link, make_link("none")), InputError);
  EXPECT_THROW(Boundary("layer1", make_link("none"), link), InputError);
}

}  // namespace
}  // namespace strait
