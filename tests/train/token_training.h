#pragma once

#include "tests/train/observer.h"
#include "tests/train/tied_network.h"
#include "tests/train/token_network.h"

namespace strait::test {

inline DataSplits token_splits(int64_t train = 22) { return {token_data(train), token_data(7)}; }

struct Trained {
  State state;
  std::vector<EpochMetrics> epochs;
};

inline Trained trained(const TrainerOptions& options, bool drops = false, int64_t samples = 22) {
  Trainer trainer(token_model(drops), options);
  Observer observer;
  EXPECT_TRUE(trainer.train(token_splits(samples), observer));
  return {copy_of(trainer.collect_model()), observer.epochs};
}

}  // namespace strait::test
