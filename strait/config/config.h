#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strait/boundary/options.h"
#include "strait/checkpoint/options.h"
#include "strait/data/dataset.h"
#include "strait/models/options.h"
#include "strait/pipeline/options.h"
#include "strait/train/options.h"

namespace strait {

/// Everything that decides what a run computes, and when it leaves checkpoints. config_keys.h lists the keys.
struct Config {
  std::string name = "run";                   ///< also the name of the run's folder
  uint64_t seed = 0;                          ///< decides initial weights and every random draw
  std::vector<NetworkOptions> networks = {};  ///< [[networks]]
  ModelOptions model;                         ///< [model]
  DataOptions data;                           ///< [data]
  TrainOptions train;                         ///< [train]
  PipelineOptions pipeline;                   ///< [pipeline]
  CompressionOptions compression;             ///< [compression]
  CheckpointOptions checkpoint;               ///< [checkpoint]

  bool operator==(const Config&) const = default;
};

/// Gives every key that a kind decides about (`model.kind` and so on, as the configuration says them) the value
/// that it has where nothing sets it.
void set_defaults_of_kinds(Config& config);

/// What nothing but the kinds, which are those of `kinds`, decides about.
Config defaults_for(const Config& kinds);

/// Reads a configuration file, the files under it (`base = "other.toml"`, relative to the file that says
/// so) and, on top, the `key=value` of `--set` flags; the last one wins. Values are checked one by one and
/// together, codec specs included; whether the layers and files named exist is for their users to say.
/// Throws InputError `FILE:LINE: KEY: expected ..., found ...`.
Config load_config(const std::filesystem::path& path, std::span<const std::string> overrides = {});

/// The same for a text that belongs to no file and so cannot have a base.
Config parse_config(std::string_view text, const std::string& source_name,
                    std::span<const std::string> overrides = {});

/// The configuration as resolved, every key written out. parse_config() of it gives an equal Config, and
/// equal Configs give equal text.
std::string to_toml(const Config& config);

/// A key with what there is to know of it.
struct KeyEntry {
  std::string key;       ///< dotted, such as `train.optimizer.lr`
  std::string value;     ///< as TOML
  std::string expected;  ///< what it may be, such as `an integer >= 1`
  std::string meaning;   ///< for people
};

/// The keys that there are with the kinds of the configuration, in the order of to_toml().
std::vector<KeyEntry> key_entries(const Config& config);

/// The same keys with their values alone.
std::vector<std::pair<std::string, std::string>> key_values(const Config& config);

/// Whether a key says where data or stores lie, and nothing about what is in them: such a key may differ
/// between a run and its continuation, and between machines.
bool says_a_place(const Config& config, std::string_view key);

/// Those that make a run compute what it does: the kinds, and keys that differ from their defaults, without the
/// name, where data and stores lie, pipeline.timeout, .transport, .connections, .rejoin and .link, [[networks]]
/// and [checkpoint]. Where codecs are chosen by time the link decides too, and is kept: the network that
/// compression.auto.network names, else pipeline.link. A later version that knows more keys gives the same
/// list, as long as no default changes.
std::vector<std::pair<std::string, std::string>> deciding_keys(const Config& config);

/// The first of these that two configurations do not have alike.
std::optional<std::string> differing_key(const Config& one, const Config& other);

/// 16 hex digits that two configurations share when their deciding_keys() are the same.
std::string config_hash(const Config& config);

/// The folder that holds the data sets where nothing says otherwise: STRAIT_DATA, or "data".
std::string default_data_root();

}  // namespace strait
