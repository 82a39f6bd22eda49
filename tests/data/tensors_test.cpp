#include "strait/data/tensors.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "strait/base/error.h"
#include "strait/data/kinds.h"
#include "strait/formats/safetensors.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using testing::ElementsAre;

class Tensors : public testing::Test {
 protected:
  Tensors() {
    options_.root = dir_.path();
    write("train.safetensors", inputs_, labels_);
    write("test.safetensors", inputs_.narrow(0, 0, 2), labels_.narrow(0, 0, 2));
  }

  void write(const std::string& name, const at::Tensor& inputs, const at::Tensor& targets) const {
    write_safetensors(dir_ / name, {{{"inputs", inputs}, {"targets", targets}}, {}});
  }

  std::string complaint() const {
    return test::message_of<InputError>([&] { load_data(options_); });
  }

  test::TempDir dir_;
  at::Tensor inputs_ = at::randn({5, 2, 3});
  at::Tensor labels_ = at::arange(5).remainder(4);
  DataOptions options_{"tensors", {{"train_file", "train.safetensors"}, {"test_file", "test.safetensors"}}};
  std::string train_ = (dir_ / "train.safetensors").string();
  std::string test_ = (dir_ / "test.safetensors").string();
};

TEST_F(Tensors, BatchesHaveTheRowsOfTheFile) {
  const auto data = load_data(options_);
  EXPECT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.test->size(), 2);
  const Batch batch = data.train->batch(std::vector<int64_t>{4, 1}, 17);
  EXPECT_TRUE(at::equal(batch.inputs[0], inputs_[4]));
  EXPECT_TRUE(at::equal(batch.inputs[1], inputs_[1]));
  EXPECT_EQ(batch.targets[0].item<int64_t>(), 0);
  EXPECT_EQ(batch.targets[1].item<int64_t>(), 1);
  EXPECT_THAT(batch.ids, ElementsAre(4, 1));
}

TEST_F(Tensors, NarrowerTypesAreWidened) {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    write("train.safetensors", inputs_.to(type), labels_.to(at::kInt));
    const Batch batch = load_data(options_).train->batch(std::vector<int64_t>{4, 1}, {});
    EXPECT_EQ(batch.inputs.scalar_type(), at::kFloat);
    EXPECT_TRUE(at::equal(batch.inputs[1], inputs_[1].to(type).to(at::kFloat)));
    EXPECT_EQ(batch.targets.scalar_type(), at::kLong);
    EXPECT_EQ(batch.targets[1].item<int64_t>(), 1);
  }
}

TEST_F(Tensors, TheFormIsThatOfTheFile) {
  const auto form = [&] { return data_kind("tensors").form(options_); };
  EXPECT_THAT(form().shape, ElementsAre(2, 3));
  EXPECT_EQ(form().outputs, 4);
  options_.settings.set("classes", 9);
  EXPECT_EQ(form().outputs, 9);
}

TEST_F(Tensors, FloatsAreNumbersToBePredicted) {
  const auto form = [&] { return data_kind("tensors").form(options_); };
  const auto task = [&] { return data_kind("tensors").task_of_files(options_); };
  EXPECT_EQ(task(), "classification");
  const at::Tensor numbers = at::randn({5, 2, 2});
  write("train.safetensors", inputs_, numbers.to(at::kHalf));
  write("test.safetensors", inputs_, numbers.flatten(1));
  EXPECT_EQ(task(), "regression");
  EXPECT_EQ(form().outputs, 4);
  const auto data = load_data(options_);
  const Batch batch = data.train->batch(std::vector<int64_t>{4, 1}, {});
  EXPECT_EQ(batch.targets.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(batch.targets[1], numbers[1].flatten().to(at::kHalf).to(at::kFloat)));
  EXPECT_THAT(data.train->classes(std::vector<int64_t>{4, 1}), testing::IsEmpty());
  const std::string before = fingerprint(data);
  write("train.safetensors", inputs_, numbers.add(1));
  EXPECT_NE(fingerprint(load_data(options_)), before);

  write("train.safetensors", inputs_, numbers.select(2, 0).select(1, 0));
  EXPECT_EQ(form().outputs, 1);
  EXPECT_EQ(
      complaint(),
      test_ + ": tensor \"targets\" has 4 numbers for each sample, expected 1 number for each sample, as in " +
          train_);
  write("test.safetensors", inputs_, labels_);
  EXPECT_EQ(complaint(),
            test_ + ": tensor \"targets\" has labels, expected 1 number for each sample, as in " + train_);
  write("train.safetensors", inputs_, numbers.narrow(0, 0, 4));
  EXPECT_EQ(complaint(), train_ + ": has 5 inputs and 4 targets, expected as many");
  numbers[3][1][0] = std::numeric_limits<float>::quiet_NaN();
  for (const char* name : {"train.safetensors", "test.safetensors"}) write(name, inputs_, numbers);
  EXPECT_EQ(complaint(), train_ + ": tensor \"targets\" has a value that is not finite");
  options_.settings.set("classes", 4);
  EXPECT_EQ(complaint(), "data.classes: expected 0, because the targets of " + train_ +
                             " are no labels but numbers, found 4");
}

TEST_F(Tensors, LimitsAndPathsFromHere) {
  options_.settings.set("train_file", train_);
  options_.root = "";
  options_.settings.set("test_file", test_);
  options_.train_limit = 3;
  EXPECT_EQ(load_data(options_).train->size(), 3);
  options_.test_limit = 3;
  EXPECT_EQ(complaint(), "data.test_limit is 3, expected 0 (all) to 2");
  std::filesystem::create_symlink("loop", dir_ / "loop");
  options_.settings.set("train_file", (dir_ / "loop").string());
  EXPECT_EQ(complaint(), (dir_ / "loop").string() + ": cannot be read: Too many levels of symbolic links");
}

TEST_F(Tensors, OtherContentIsNamed) {
  write("train.safetensors", inputs_.to(at::kDouble), labels_);
  EXPECT_EQ(complaint(), train_ +
                             ": tensor \"inputs\" is F64 of shape [5, 2, 3], expected F32, F16 or BF16 of "
                             "shape [N, ...] without a 0");
  write("train.safetensors", inputs_, labels_.view({5, 1}));
  EXPECT_EQ(complaint(), train_ +
                             ": tensor \"targets\" is I64 of shape [5, 1], expected I64 or I32 of shape [N], "
                             "or F32, F16 or BF16 of "
                             "shape [N] or [N, ...] without a 0");
  write("train.safetensors", inputs_, at::arange(4));
  EXPECT_EQ(complaint(), train_ + ": has 5 inputs and 4 targets, expected as many");
  write("train.safetensors", inputs_.narrow(0, 0, 0), labels_.narrow(0, 0, 0));
  EXPECT_THAT(
      complaint(),
      testing::EndsWith("is F32 of shape [0, 2, 3], expected F32, F16 or BF16 of shape [N, ...] without a 0"));
  write("train.safetensors", at::zeros({5, 0, 3}), labels_);
  EXPECT_THAT(complaint(), testing::HasSubstr("is F32 of shape [5, 0, 3], expected"));
  write_safetensors(train_, {{{"inputs", inputs_}}, {}});
  EXPECT_EQ(complaint(), train_ + ": has no tensor \"targets\", expected \"inputs\" and \"targets\"");
  at::Tensor bad = inputs_.clone();
  bad[2][1][1] = std::numeric_limits<float>::infinity();
  write("train.safetensors", bad, labels_);
  EXPECT_EQ(complaint(), train_ + ": tensor \"inputs\" has a value that is not finite");
}

TEST_F(Tensors, LabelsBeyondTheClassesAreNamed) {
  write("test.safetensors", inputs_, at::full({5}, 4, at::kLong));
  EXPECT_EQ(complaint(), test_ + ": tensor \"targets\" has the label 4, expected 0 to 3");
  options_.settings.set("classes", 3);
  EXPECT_EQ(complaint(), train_ + ": tensor \"targets\" has the label 3, expected 0 to 2");
  options_.settings.set("classes", 0);
  write("train.safetensors", inputs_, at::full({5}, std::numeric_limits<int64_t>::max(), at::kLong));
  EXPECT_THAT(complaint(), testing::HasSubstr("has the label 9223372036854775807, expected 0 to 2147483647"));
  write("train.safetensors", inputs_, labels_.sub(1));
  EXPECT_EQ(complaint(), train_ + ": tensor \"targets\" has the label -1, expected 0 to 2147483647");
}

TEST_F(Tensors, TheTestSetHasTheSameShape) {
  write("test.safetensors", at::zeros({5, 6}), labels_);
  EXPECT_EQ(complaint(), test_ + ": has samples of shape [6], expected [2, 3], as in " + train_);
  options_.settings.set("test_file", "");
  EXPECT_EQ(complaint(), "data.test_file is not set, expected the name of a safetensors file");
}

}  // namespace
}  // namespace strait
