// What crosses before and from the epoch at which compression starts, where links keep something for each
// sample.

#include "tests/train/tied_network.h"

namespace strait {
namespace {

/// Bytes of the first boundary's activations in each epoch, without the frames' headers.
std::vector<uint64_t> bytes_of_epochs(const std::string& fill) {
  struct Recorder : TrainObserver {
    void on_epoch(const EpochMetrics& metrics) override {
      const Traffic& traffic = metrics.boundaries.front().activations;
      bytes.push_back(traffic.wire_bytes - traffic.messages * kFrameHeaderSize);
    }
    std::vector<uint64_t> bytes;
  } recorder;
  TrainerOptions options;
  options.seed = 3;
  options.batch_size = 8;
  options.train.epochs = 4;
  options.train.device = "cpu";
  options.compression.activations = {"quant:8,scope=sample", "aq-sgd"};
  options.compression.start_epoch = 2;
  options.compression.store.fill = fill;
  options.cuts = {"embed", "a", "b"};
  Trainer trainer(test::tied_model(), options);
  EXPECT_TRUE(trainer.train(test::tied_data(), recorder));
  return recorder.bytes;
}

TEST(WarmUp, IsAsLongAsItSaysWhereItFillsTheBuffers) {
  constexpr uint64_t kRaw = 20 * test::kWidth * 4;
  constexpr uint64_t kCompressed = 20 * (8 + test::kWidth);
  EXPECT_EQ(bytes_of_epochs("warmup"), (std::vector<uint64_t>{kRaw, kRaw, kCompressed, kCompressed}));
  EXPECT_EQ(bytes_of_epochs("first_visit"), (std::vector<uint64_t>{kRaw, kRaw, kRaw, kCompressed}));
}

}  // namespace
}  // namespace strait
