#include "strait/checkpoint/model_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/models/bottleneck.h"
#include "tests/models/tiny_gpt2.h"
#include "tests/support/temp_dir.h"
#include "tests/train/tied_network.h"

namespace strait {
namespace {

using test::copy_of;
using test::expect_equal;
using test::State;
using testing::HasSubstr;

class ModelFile : public testing::Test {
 protected:
  ModelFile() {
    torch::manual_seed(21);
    saved_ = make_gpt2(test::tiny_gpt2(), 10);
    save_model(path_, saved_);
    file_ = read_safetensors(path_);
    other_ = make_gpt2(test::tiny_gpt2(), 10);
  }

  at::Tensor& tensor(const std::string& name) {
    const auto found = std::ranges::find(file_.tensors, name, [](const auto& entry) { return entry.first; });
    if (found == file_.tensors.end()) throw std::out_of_range(name);
    return found->second;
  }

  void rename(const std::string& from, const std::string& to) {
    for (auto& [name, value] : file_.tensors) {
      if (name == from) name = to;
    }
  }

  /// Writes the tensors and reads them into the other model.
  void load() {
    write_safetensors(path_, file_);
    load_model(path_, other_);
  }

  /// The message, and that nothing has changed.
  std::string error_of_load() {
    write_safetensors(path_, file_);
    return error();
  }

  std::string error() {
    const State before = copy_of(other_);
    try {
      load_model(path_, other_);
    } catch (const InputError& error) {
      expect_equal(copy_of(other_), before);
      EXPECT_THAT(error.what(), HasSubstr(path_.string() + ": "));
      return error.what();
    }
    return "no error";
  }

  const test::TempDir dir_;
  const std::filesystem::path path_ = dir_ / "model.safetensors";
  Model saved_;
  TensorFile file_;
  Model other_;
};

TEST_F(ModelFile, HasNoSecondOfATieAndIsReadAgain) {
  EXPECT_EQ(file_.find("lm_head.weight"), nullptr);
  EXPECT_NE(file_.find("wte.weight"), nullptr);
  EXPECT_EQ(file_.tensors.size() + 1, saved_.state().size());
  load();
  expect_equal(copy_of(other_), copy_of(saved_));
}

TEST_F(ModelFile, IsReadWithPrefixMasksAndHead) {
  for (auto& [name, value] : file_.tensors) name = "transformer." + name;
  for (const char* block : {"transformer.h.0.attn.", "transformer.h.1.attn."}) {
    file_.tensors.emplace_back(block + std::string("bias"), torch::ones({1, 1, 10, 10}, torch::kByte));
    file_.tensors.emplace_back(block + std::string("masked_bias"), torch::full({}, -1e4));
  }
  file_.tensors.emplace_back("lm_head.weight", tensor("transformer.wte.weight").clone());
  load();
  expect_equal(copy_of(other_), copy_of(saved_));
}

TEST_F(ModelFile, MasksAreLeftOutWithoutPrefixToo) {
  file_.tensors.emplace_back("h.0.attn.bias", torch::ones({1, 1, 10, 10}));
  load();
  expect_equal(copy_of(other_), copy_of(saved_));
}

TEST_F(ModelFile, HalfTypesAreRead) {
  for (const auto type : {at::kHalf, at::kBFloat16}) {
    file_ = weights_of(saved_);
    for (auto& [name, value] : file_.tensors) value = value.to(type);
    load();
    for (const auto& [name, value] : other_.state()) {
      EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
      EXPECT_TRUE(at::equal(value, file_.find(name)->to(at::kFloat))) << name;
    }
  }
}

TEST_F(ModelFile, OtherTypesAreRefused) {
  for (const auto& [type, name] : {std::pair(at::kDouble, "F64"), {at::kLong, "I64"}, {at::kByte, "U8"}}) {
    tensor("wpe.weight") = torch::zeros({10, 12}, type);
    EXPECT_THAT(error_of_load(), HasSubstr("tensor \"wpe.weight\" is " + std::string(name) +
                                           " of shape [10, 12], expected F32, F16 or BF16 of shape [10, 12]"));
  }
}

TEST_F(ModelFile, OtherShapesAreRefused) {
  tensor("h.1.attn.c_attn.weight") = torch::zeros({36, 12});  // a linear layer's
  EXPECT_THAT(error_of_load(),
              HasSubstr("tensor \"h.1.attn.c_attn.weight\" is F32 of shape [36, 12], expected F32, "
                        "F16 or BF16 of shape [12, 36]"));
  Gpt2Options larger = test::tiny_gpt2();
  larger.width = 24;
  larger.layers = 4;
  save_model(path_, make_gpt2(larger, 10));
  EXPECT_THAT(error(),
              HasSubstr("tensor \"wte.weight\" is F32 of shape [19, 24], expected F32, F16 or BF16 of shape "
                        "[19, 12]"));
  larger.width = 12;
  save_model(path_, make_gpt2(larger, 10));
  EXPECT_THAT(error(), HasSubstr("tensor \"h.2.attn.c_attn.bias\" is not part of the model"));
}

TEST_F(ModelFile, AMissingTensorIsNamedWithTheNearest) {
  rename("h.1.ln_2.weight", "h.1.ln_2.wieght");
  EXPECT_THAT(error_of_load(),
              HasSubstr("tensor \"h.1.ln_2.weight\" is missing (did you mean \"h.1.ln_2.wieght\"?)"));
  rename("h.1.ln_2.wieght", "h.1.ln_2.weight");
  rename("ln_f.bias", "something.else.of.the.network");
  EXPECT_THAT(error_of_load(), testing::EndsWith("tensor \"ln_f.bias\" is missing"));
}

TEST_F(ModelFile, OnlyAFileToStartFromMayLackABottleneck) {
  add_bottlenecks(other_, {"h.0"}, 5);
  const State before = copy_of(other_);
  EXPECT_THAT(error(), testing::EndsWith("tensor \"h.0.encoder.weight\" is missing"));
  load_initial(path_, other_);
  const State after = copy_of(other_);
  for (size_t i = 0; i < before.size(); ++i) {
    const auto& [name, value] = after[i];
    const bool is_added = name.starts_with("h.0.encoder.") || name.starts_with("h.0.decoder.");
    const std::string first = name == "lm_head.weight" ? "wte.weight" : name;
    EXPECT_TRUE(at::equal(value, is_added ? before[i].second : tensor(first))) << name;
  }
  // A file that has it is read whole.
  save_model(path_, other_);
  const State expected = copy_of(other_);
  for (const auto& [name, value] : other_.state()) value.detach().zero_();
  load_initial(path_, other_);
  expect_equal(copy_of(other_), expected);
}

TEST_F(ModelFile, AnotherHeadIsRefused) {
  at::Tensor head = tensor("wte.weight").clone();
  head[3][4] += 0.5;
  file_.tensors.emplace_back("lm_head.weight", head);
  EXPECT_THAT(error_of_load(),
              HasSubstr("tensor \"lm_head.weight\" differs from \"wte.weight\", expected the same "
                        "values: the model has one matrix for both"));
}

TEST_F(ModelFile, ATensorWithAndWithoutPrefixIsRefused) {
  file_.tensors.emplace_back("transformer.ln_f.bias", torch::zeros({12}));
  EXPECT_THAT(error_of_load(),
              HasSubstr("tensor \"transformer.ln_f.bias\" is there twice, the other time as \"ln_f.bias\""));
}

TEST_F(ModelFile, ValuesThatAreNotFiniteAreRefused) {
  tensor("h.0.mlp.c_fc.bias")[5] = std::numeric_limits<float>::quiet_NaN();
  tensor("h.0.mlp.c_fc.bias") = tensor("h.0.mlp.c_fc.bias").to(at::kHalf);
  EXPECT_THAT(error_of_load(), HasSubstr("tensor \"h.0.mlp.c_fc.bias\" has a value that is not finite"));
}

TEST_F(ModelFile, ATruncatedFileIsRefused) {
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 20);
  EXPECT_THAT(error(), HasSubstr("tensor "));
  EXPECT_THAT(error(), HasSubstr("data_offsets"));
  std::filesystem::resize_file(path_, 5);
  EXPECT_THAT(error(), HasSubstr("has 5 bytes"));
}

}  // namespace
}  // namespace strait
