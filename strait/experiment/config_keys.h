#pragma once

#include "strait/experiment/config.h"
#include "strait/experiment/rules.h"
#include "strait/pipeline/schedules.h"

namespace strait {

/// Samples of a batch, so that none of the numbers that are made of it is beyond an int64_t.
inline constexpr int64_t kLargestBatch = int64_t{1} << 30;

// The parts of visit_keys().

template <class C, class Visitor>
void visit_network_keys(C& config, Visitor& visit) {
  auto& model = config.model;
  visit("model.kind", model.kind, one_of({"resnet18", "gpt2"}));
  visit("model.width", model.width, at_least(1));
  if (model.kind == "gpt2") {
    visit("model.layers", model.layers, at_least(1));
    visit("model.heads", model.heads, at_least(1));
    visit("model.context", model.context, at_least(2));
    visit("model.vocab", model.vocab, at_least(1));
    visit("model.dropout", model.dropout, below_one());
    visit("model.init", model.init, path_text());
    visit("model.recompute", model.recompute, yes_or_no());
  }
  visit("model.cuts", model.cuts, distinct_names());

  auto& data = config.data;
  visit("data.kind", data.kind, one_of({"cifar10", "shapes", "wikitext2", "text"}));
  visit("data.root", data.root, path_text());
  visit("data.train_limit", data.train_limit, at_least(0));
  visit("data.test_limit", data.test_limit, at_least(0));
  visit("data.batch_size", data.batch_size, from_to(1, kLargestBatch));
  if (is_text(data)) {
    visit("data.block", data.block, at_least(2));
    visit("data.tokenizer", data.tokenizer, path_text());
    visit("data.train_range", data.train_range, range_of_share());
  }
  if (data.kind == "text") {
    visit("data.train_file", data.train_file, path_text());
    visit("data.test_file", data.test_file, path_text());
  }
}

template <class C, class Visitor>
void visit_training_keys(C& config, Visitor& visit) {
  auto& train = config.train;
  visit("train.epochs", train.epochs, at_least(1));
  visit("train.optimizer.kind", train.optimizer.kind, one_of({"sgd", "adamw"}));
  visit("train.optimizer.lr", train.optimizer.lr, positive());
  if (train.optimizer.kind == "adamw") {
    visit("train.optimizer.betas", train.optimizer.betas, two_below_one());
    visit("train.optimizer.eps", train.optimizer.eps, positive());
  } else {
    visit("train.optimizer.momentum", train.optimizer.momentum, below_one());
  }
  visit("train.optimizer.weight_decay", train.optimizer.weight_decay, not_negative());
  visit("train.schedule.kind", train.schedule.kind, one_of({"cosine", "constant", "linear"}));
  if (train.schedule.kind == "linear") {
    visit("train.schedule.warmup_steps", train.schedule.warmup_steps, at_least(0));
  } else {
    visit("train.schedule.t_max", train.schedule.t_max, at_least(1));
  }
  visit("train.accumulate", train.accumulate, at_least(1));
  visit("train.clip_norm", train.clip_norm, not_negative());
  visit("train.precision", train.precision, one_of({"fp32", "bf16"}));
  visit("train.evaluate_every", train.evaluate_every, at_least(0));
  visit("train.device", train.device, one_of({"auto", "cpu", "cuda"}, {{"gpu", "cuda"}}));
  visit("train.threads", train.threads, at_least(0));
}

/// The one list of keys: calls visit(key, field, rule) for each, in the order of the resolved file, the
/// keys of a table together. Reading, writing, checks and suggestions all go through it. Which keys there are
/// depends on the values of the keys `*.kind`, each of which comes before those that depend on it. `C` is
/// Config or const Config; a key's default is the field's initial value, or what set_defaults_of_kinds() says.
template <class C, class Visitor>
void visit_keys(C& config, Visitor&& visit) {
  visit("name", config.name, folder_name());
  visit("seed", config.seed, at_least(0));

  visit_network_keys(config, visit);
  visit_training_keys(config, visit);

  auto& pipeline = config.pipeline;
  visit("pipeline.schedule", pipeline.schedule, one_of(schedule_names()));
  visit("pipeline.micro_batches", pipeline.micro_batches, at_least(1));
  visit("pipeline.stages_per_rank", pipeline.stages_per_rank, at_least(1));
  visit("pipeline.replicas", pipeline.replicas, at_least(1));
  visit("pipeline.timeout", pipeline.timeout, duration());

  auto& compression = config.compression;
  visit("compression.activations.codec", compression.activations.codec, codec_spec());
  visit("compression.activations.feedback", compression.activations.feedback, feedback());
  visit("compression.gradients.codec", compression.gradients.codec, codec_spec());
  visit("compression.gradients.feedback", compression.gradients.feedback, feedback());
  visit("compression.replicas.codec", compression.replicas.codec, codec_spec());
  visit("compression.replicas.feedback", compression.replicas.feedback, feedback());
  visit("compression.reuse_indices", compression.reuse_indices, yes_or_no());
  visit("compression.store.place", compression.store.place, one_of({"memory", "file"}));
  visit("compression.store.format", compression.store.format, one_of({"fp32", "bf16", "quant:8"}));
  visit("compression.store.folder", compression.store.folder, path_text());
  visit("compression.store.fill", compression.store.fill, one_of({"first_visit", "warmup"}));
  visit("compression.start_epoch", compression.start_epoch, at_least(0));
  visit("compression.start_from", compression.start_from, path_text());
  visit("compression.start_from_optimizer", compression.start_from_optimizer, yes_or_no());
  visit("compression.evaluation", compression.evaluation, one_of({"plain", "frozen", "live"}));
  visit("compression.diagnostics", compression.diagnostics, at_least(0));

  auto& checkpoint = config.checkpoint;
  visit("checkpoint.every_epochs", checkpoint.every_epochs, at_least(0));
  visit("checkpoint.every_steps", checkpoint.every_steps, at_least(0));
  visit("checkpoint.keep", checkpoint.keep, at_least(1));
  visit("checkpoint.keep_epochs", checkpoint.keep_epochs, each_at_least(0));
  visit("checkpoint.copies", checkpoint.copies, at_least(-1));
}

}  // namespace strait
