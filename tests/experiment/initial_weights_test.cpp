#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "strait/experiment/run.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

TEST(InitialWeights, AreFoundBelowTheDataRoot) {
  const test::TempDir root;
  Config config;
  EXPECT_EQ(initial_weights(config), "");
  config.model = ModelOptions("gpt2");
  config.data.root = root.path().string();
  config.model.settings.set("init", "some/model.safetensors");
  std::filesystem::create_directory(root / "some");
  test::write_file(root / "some/model.safetensors", "");
  EXPECT_EQ(initial_weights(config), root / "some/model.safetensors");
}

TEST(InitialWeights, ThatAreMissingSayHowToGetThem) {
  const test::TempDir root;
  Config config;
  config.data.root = root.path().string();
  config.model = ModelOptions("gpt2", {{"init", "gpt2/model.safetensors"}});
  const auto complaint = [&] { return test::message_of<InputError>([&] { initial_weights(config); }); };
  EXPECT_EQ(
      complaint(),
      "model.init: no file gpt2/model.safetensors, here or below data.root; \"strait data get gpt2\" fetches "
      "gpt2/model.safetensors into data.root");
  config.model.settings.set("init", "other/model.safetensors");
  EXPECT_EQ(complaint(), "model.init: no file other/model.safetensors, here or below data.root");
}

}  // namespace
}  // namespace strait
