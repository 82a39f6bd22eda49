#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strait {

/// The [train.optimizer] table of a configuration; names and meanings are PyTorch's.
struct OptimizerOptions {
  std::string kind = "sgd";                  ///< one of optimizer_kinds()
  double lr = 0.01;                          ///< learning rate at its highest
  double momentum = 0.9;                     ///< sgd
  std::vector<double> betas = {0.9, 0.999};  ///< adam, adamw: of the means of gradients and of their squares
  double eps = 1e-8;                         ///< adam, adamw
  double weight_decay = 5e-4;                ///< part of the gradient, of adamw apart from it

  bool operator==(const OptimizerOptions&) const = default;
};

/// The learning rate over the training.
struct ScheduleOptions {
  std::string kind = "cosine";  ///< one of rate_schedule_kinds()
  int t_max = 200;              ///< cosine: epochs of half a period (PyTorch's CosineAnnealingLR)
  int warmup_steps = 0;         ///< linear: steps in which the rate rises from 0; then it falls to 0 at the end

  bool operator==(const ScheduleOptions&) const = default;
};

/// Threads of a process at most, so that the system can start them.
inline constexpr int kMostThreads = 1024;

/// The [train] table of a configuration.
struct TrainOptions {
  int epochs = 100;                ///< passes over the training set
  OptimizerOptions optimizer;      ///< [train.optimizer]
  ScheduleOptions schedule;        ///< [train.schedule]
  int accumulate = 1;              ///< batches per optimizer step
  double clip_norm = 0;            ///< largest 2-norm of the gradient of what steps together; 0 = any
  std::string precision = "fp32";  ///< fp32 | bf16: of matrix products; check_precision()
  int64_t log_every = 0;           ///< steps of the optimizer from one line of steps.jsonl to the next
  int64_t evaluate_every = 0;      ///< steps of the optimizer from one evaluation within an epoch to the next
  int evaluate_epochs = 1;         ///< epochs from one evaluation after an epoch to the next; the last has one
  std::string device = "auto";     ///< auto | cpu | cuda | cuda:N
  int threads = 0;                 ///< of a process; 0: see thread_count()

  bool operator==(const TrainOptions&) const = default;
};

}  // namespace strait
