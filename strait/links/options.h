#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strait/codecs/spec.h"

namespace strait {

/// The spec of the link that has no feedback: each message is the codec's.
inline constexpr std::string_view kNoFeedback = "none";

/// Where and how a link keeps a buffer per sample of the training set.
struct StoreOptions {
  std::string place = "memory";  ///< memory | file: memory-mapped, without a name, gone with the process
  std::string format = "fp32";   ///< one of store_formats(); both endpoints round alike
  std::string folder;            ///< of the file; empty: the run's folder
  std::string fill =
      "first_visit";  ///< first_visit: by a sample's first message; warmup: by the epochs before too

  /// Whether the store is a mapped file.
  bool is_in_file() const { return place == "file"; }

  /// Whether the epochs before compression fill buffers too.
  bool fills_early() const { return fill == "warmup"; }

  bool operator==(const StoreOptions&) const = default;
};

/// What `place` can be.
std::vector<std::string> store_places();

/// What `fill` can be.
std::vector<std::string> store_fills();

/// The formats that a store can have, the largest first: fp32, bf16, and quant:b, b bits over each sample's
/// range.
std::vector<std::string> store_formats();

/// The options of a spec that has those of a store: place, format and folder, and fill where the scheme keeps
/// what the receiver sees and so can take it from a message that is not compressed. Throws InputError.
StoreOptions read_store_options(OperatorSpec& spec, bool has_fill);

/// What a piece of a link's state serves: a row of the batch, whatever sample stands there; a sample of the
/// training set, which must then always come to the same endpoints; or a class of samples.
enum class Slots { none, rows, samples, classes };

/// What the state of a feedback scheme belongs to, and where that of samples lies.
struct SlotOptions {
  Slots slots = Slots::rows;  ///< rows, samples or classes
  StoreOptions store;         ///< of samples
};

/// The option `slots` of a spec, rows (default), class or sample, and with the last those of
/// read_store_options(). Throws InputError.
SlotOptions read_slot_options(OperatorSpec& spec, bool has_fill);

}  // namespace strait
