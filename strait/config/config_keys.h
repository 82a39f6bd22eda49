#pragma once

#include <concepts>
#include <type_traits>

#include "strait/base/kinds.h"
#include "strait/boundary/evaluation.h"
#include "strait/config/config.h"
#include "strait/config/rules.h"
#include "strait/data/kinds.h"
#include "strait/models/kinds.h"
#include "strait/pipeline/schedules.h"
#include "strait/train/learning_rate.h"
#include "strait/train/optimizer.h"
#include "strait/train/options.h"
#include "strait/transport/join_group.h"

namespace strait {

/// Samples of a batch, so that none of the numbers that are made of it is beyond an int64_t.
inline constexpr int64_t kLargestBatch = int64_t{1} << 30;

/// The key model.kind.
template <class C, class Visitor>
void visit_model_kind(C& config, Visitor& visit) {
  visit("model.kind", config.model.kind, one_of(names_of(model_kinds())), "the network");
}

/// The key data.kind.
template <class C, class Visitor>
void visit_data_kind(C& config, Visitor& visit) {
  visit("data.kind", config.data.kind, one_of(names_of(data_kinds())), "the data set");
}

/// The key train.optimizer.kind.
template <class C, class Visitor>
void visit_optimizer_kind(C& config, Visitor& visit) {
  visit("train.optimizer.kind", config.train.optimizer.kind, one_of(names_of(optimizer_kinds())),
        "how gradients change the weights");
}

/// The key train.schedule.kind.
template <class C, class Visitor>
void visit_schedule_kind(C& config, Visitor& visit) {
  visit("train.schedule.kind", config.train.schedule.kind, one_of(names_of(rate_schedule_kinds())),
        "how the learning rate changes");
}

/// These four: the keys that say which others there are.
template <class C, class Visitor>
void visit_kinds(C& config, Visitor&& visit) {
  visit_model_kind(config, visit);
  visit_data_kind(config, visit);
  visit_optimizer_kind(config, visit);
  visit_schedule_kind(config, visit);
}

/// Of the settings that a table's kind has of its own.
template <class S, class Visitor>
void visit_own_keys(const std::string& table, const std::vector<SettingKey>& keys, S& settings,
                    Visitor& visit) {
  visit_settings(keys, settings,
                 [&](const std::string& name, auto& value, const auto& rule, const std::string& meaning) {
                   visit(table + name, value, rule, meaning);
                 });
}

// The parts of visit_keys().

/// The keys of [model] and [data].
template <class C, class Visitor>
void visit_network_keys(C& config, Visitor& visit) {
  auto& model = config.model;
  visit_model_kind(config, visit);
  visit_own_keys("model.", model_kind(model.kind).keys, model.settings, visit);
  visit("model.cuts", model.cuts, distinct_names(), "a stage ends after each of these layers or groups");

  auto& data = config.data;
  visit_data_kind(config, visit);
  visit("data.root", data.root, path_text(), "folder of the data sets; STRAIT_DATA where nothing sets it");
  visit("data.train_limit", data.train_limit, at_least(0),
        "use the first N training samples; 0: all, or as many as data that is drawn has by default");
  visit("data.test_limit", data.test_limit, at_least(0),
        "use the first N test samples; 0: all, or as many as data that is drawn has by default");
  visit("data.batch_size", data.batch_size, from_to(1, kLargestBatch),
        "samples per batch, all replicas together; the last batch of an epoch has what is left");
  visit_own_keys("data.", data_kind(data.kind).keys, data.settings, visit);
}

/// The keys of [train].
template <class C, class Visitor>
void visit_training_keys(C& config, Visitor& visit) {
  auto& train = config.train;
  visit("train.epochs", train.epochs, at_least(1), "passes over the training set");
  visit_optimizer_kind(config, visit);
  visit("train.optimizer.lr", train.optimizer.lr, positive(), "learning rate at its highest");
  const OptimizerKind& optimizer = optimizer_kind(train.optimizer.kind);
  if (optimizer.has_betas) {
    visit("train.optimizer.betas", train.optimizer.betas, two_below_one(),
          "decay of the means of gradients and of their squares");
    visit("train.optimizer.eps", train.optimizer.eps, positive(), "added to the root of the mean of squares");
  }
  if (optimizer.has_momentum) {
    visit("train.optimizer.momentum", train.optimizer.momentum, below_one(),
          "share of the last step that the next one keeps");
  }
  visit("train.optimizer.weight_decay", train.optimizer.weight_decay, not_negative(),
        "pull of all parameters towards 0; part of the gradient, for adamw apart from it");
  visit_schedule_kind(config, visit);
  if (rate_schedule_kind(train.schedule.kind).has_warmup) {
    visit("train.schedule.warmup_steps", train.schedule.warmup_steps, at_least(0),
          "optimizer steps in which the rate rises from 0; then it falls to 0 at the end");
  } else {
    visit("train.schedule.t_max", train.schedule.t_max, at_least(1),
          "epochs of half a cosine period, in which the rate falls to 0; constant ignores it");
  }
  visit("train.accumulate", train.accumulate, at_least(1), "batches per optimizer step");
  visit("train.clip_norm", train.clip_norm, not_negative(),
        "largest 2-norm of the whole network's gradient, with pipedream and xpipe of a stage's; 0: any");
  visit("train.precision", train.precision, one_of({"fp32", "bf16"}),
        "bf16: matrix products in bfloat16, as under PyTorch's autocast; the device must have it");
  visit("train.log_every", train.log_every, at_least(0),
        "say loss, rate and bytes after every N optimizer steps too; 0: only after epochs");
  visit("train.evaluate_every", train.evaluate_every, at_least(0),
        "also score the test set after every N optimizer steps; 0: only after epochs");
  visit("train.evaluate_epochs", train.evaluate_epochs, at_least(1),
        "score the test set after every N epochs, and after the last");
  visit("train.device", train.device, device_name(), "auto: a GPU where there is one; cuda: the first");
  visit("train.threads", train.threads, from_to(0, kMostThreads),
        "threads per process; 0: OMP_NUM_THREADS, or else the available cores, shared by the processes of "
        "this machine");
}

/// The keys of [compression].
template <class C, class Visitor>
void visit_compression_keys(C& config, Visitor& visit) {
  auto& compression = config.compression;
  visit("compression.activations.codec", compression.activations.codec, codec_or_auto(),
        "what goes forward across a cut");
  visit("compression.activations.feedback", compression.activations.feedback, feedback(), "its error feedback");
  visit("compression.gradients.codec", compression.gradients.codec, codec_or_auto(),
        "what goes backward across a cut");
  visit("compression.gradients.feedback", compression.gradients.feedback, feedback(), "its error feedback");
  visit("compression.replicas.codec", compression.replicas.codec, codec_spec(),
        "what replicas send each other: their gradients");
  visit("compression.replicas.feedback", compression.replicas.feedback, feedback(), "their error feedback");
  visit("compression.boundaries", compression.boundaries, own_boundaries(),
        "boundaries of their own kind; what an entry leaves out is as at the others");
  visit("compression.auto.ladder", compression.automatic.ladder, codecs(),
        "what codec auto chooses from, the mildest first");
  visit(
      "compression.auto.budget", compression.automatic.budget, not_negative(),
      "of the codecs whose messages have at most this relative error choose the strongest; 0: choose by time");
  visit("compression.auto.network", compression.automatic.network, any_text(),
        "of networks, the one to choose for; empty: the links of the run");
  visit("compression.auto.every_steps", compression.automatic.every_steps, at_least(0),
        "choose again after every N optimizer steps too; 0: only after four batches, when the steps have "
        "doubled and with the last of an epoch");
  visit("compression.reuse_indices", compression.reuse_indices, yes_or_no(),
        "gradients are sent at the indices of their activations");
  visit("compression.store.place", compression.store.place, one_of(store_places()),
        "where feedback with a buffer per sample keeps it");
  visit("compression.store.format", compression.store.format, one_of(store_formats()), "how it is kept");
  visit("compression.store.folder", compression.store.folder, path_text(),
        "folder of the file; empty: the run's");
  visit("compression.store.fill", compression.store.fill, one_of(store_fills()),
        "when buffers are filled: at a sample's first compressed visit, or by the epochs before start_epoch");
  visit("compression.start_epoch", compression.start_epoch, at_least(0),
        "warm-up: the first N epochs are not compressed");
  visit("compression.end_epoch", compression.end_epoch, at_least(0),
        "epochs after the first N are not compressed; 0: compression has no end");
  visit("compression.start_from", compression.start_from, path_text(),
        "run or checkpoint of another run to start from at start_epoch; empty: initial weights");
  visit("compression.start_from_optimizer", compression.start_from_optimizer, yes_or_no(),
        "take over the optimizer's state of that run too");
  visit("compression.evaluation", compression.evaluation, one_of(compressed_mode_names()),
        "what tables call on: the bare operator, the scheme with its state read only, or moving and put back");
  visit("compression.diagnostics", compression.diagnostics, at_least(0),
        "measure the messages of every N-th step; 0: never");
}

/// The keys of an entry of compression.boundaries, likewise.
template <class C, class Visitor>
requires std::same_as<std::remove_const_t<C>, OwnBoundaryOptions>
void visit_entry_keys(C& boundary, Visitor&& visit) {
  visit("name", boundary.name, any_text(), "the cut");
  visit("activations.codec", boundary.activations.codec, codec_or_auto(), "what goes forward across it");
  visit("activations.feedback", boundary.activations.feedback, feedback(), "its error feedback");
  visit("gradients.codec", boundary.gradients.codec, codec_or_auto(), "what goes backward across it");
  visit("gradients.feedback", boundary.gradients.feedback, feedback(), "its error feedback");
}

/// The keys of an entry of networks, likewise.
template <class C, class Visitor>
requires std::same_as<std::remove_const_t<C>, NetworkOptions>
void visit_entry_keys(C& network, Visitor&& visit) {
  visit("name", network.name, folder_name(), "for people");
  visit("bandwidth", network.bandwidth, bandwidth(), "at which a process sends; every network says its own");
  visit("latency", network.latency, duration_or_none(), "of every message");
  visit("compute", network.compute, positive(), "how many times faster than here the stages compute");
  visit("stage_seconds", network.stage_seconds, each_positive(),
        "of each stage, instead of what is measured here");
}

/// What has keys of its own, as an entry of an array.
template <class T>
concept HasEntryKeys = std::same_as<T, OwnBoundaryOptions> || std::same_as<T, NetworkOptions>;

/// The one list of keys: calls visit(key, field, rule, meaning) for each, in the order of the resolved file,
/// the keys of a table together. Reading, writing, checks, suggestions and `strait config` all go through it.
/// Which keys there are depends on the values of the keys `*.kind`, each of which comes before those that
/// depend on it. `C` is Config or const Config, whose settings are of its kinds; a key's default is the field's
/// initial value, or what set_defaults_of_kinds() says.
template <class C, class Visitor>
void visit_keys(C& config, Visitor&& visit) {
  visit("name", config.name, folder_name(), "name of the run, and of its folder below runs/");
  visit("seed", config.seed, at_least(0),
        "decides initial weights, order of samples, augmentation, dropout and stochastic rounding");

  visit("networks", config.networks, networks(),
        "links over which every epoch simulates its steps; changes nothing that is trained");

  visit_network_keys(config, visit);
  visit_training_keys(config, visit);

  auto& pipeline = config.pipeline;
  visit("pipeline.schedule", pipeline.schedule, one_of(schedule_names()),
        "order of the micro-batches' forward and backward passes; pipedream and xpipe step the optimizer "
        "after each micro-batch");
  visit("pipeline.micro_batches", pipeline.micro_batches, at_least(1),
        "at most so many parts into which a batch is cut, all but the last of one size (torch.chunk)");
  visit("pipeline.stages_per_rank", pipeline.stages_per_rank, at_least(1),
        "stages per process; above 1 only for interleaved");
  visit("pipeline.replicas", pipeline.replicas, at_least(1),
        "pipelines side by side, each with its part of every batch");
  visit("pipeline.timeout", pipeline.timeout, duration(),
        "how long a process waits for another before it gives up");
  visit("pipeline.transport", pipeline.transport, one_of({"tcp", "c10d", "nccl"}),
        "what carries everything between processes: strait's own connections, or LibTorch's Gloo; nccl is tcp, "
        "but for messages of exact size between CUDA devices");
  visit("pipeline.connections", pipeline.connections, from_to(1, kMostConnections),
        "connections between two processes of different machines; several where one does not fill a long, fast "
        "link");
  visit(
      "pipeline.rejoin", pipeline.rejoin, duration_or_none(),
      "how long the processes wait for one that takes the place of a lost one, before they give up; 0s: not at "
      "all");
  visit(
      "pipeline.link", pipeline.link, link_or_none(),
      "rate and latency of an emulated link, such as 200Mbps,50ms, over which each process sends; empty: none");

  visit_compression_keys(config, visit);

  auto& checkpoint = config.checkpoint;
  visit("checkpoint.every_epochs", checkpoint.every_epochs, at_least(0),
        "leave a checkpoint after every N epochs; 0: never for that reason");
  visit("checkpoint.every_steps", checkpoint.every_steps, at_least(0),
        "leave one after every N optimizer steps; 0: never for that reason");
  visit("checkpoint.keep", checkpoint.keep, at_least(1), "how many of the newest stay");
  visit("checkpoint.keep_epochs", checkpoint.keep_epochs, each_at_least(0),
        "checkpoints after so many epochs each are made, and stay; 0: one of the beginning");
  visit("checkpoint.copies", checkpoint.copies, at_least(-1),
        "other ranks that keep a copy of each part; -1: one where ranks are on several machines, else none");
}

}  // namespace strait
