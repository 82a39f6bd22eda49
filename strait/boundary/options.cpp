#include "strait/boundary/options.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "strait/base/text.h"
#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"

namespace strait {
namespace {

/// One without a codec stands for those that are chosen, which keep nothing either.
std::shared_ptr<const Link> link_of(const LinkOptions& link) {
  return make_link(link.codec == kAutoCodec ? kUncompressed : link.codec, link.feedback);
}

Slots slots_of(const LinkOptions& link) { return link_of(link)->slots(); }

LinkOptions with(const LinkOptions& all, const OwnLinkOptions& own) {
  return {own.codec.value_or(all.codec), own.feedback.value_or(all.feedback)};
}

void check_link(const std::string& key, const LinkOptions& link, int micro_batches) {
  bool fits = micro_batches == 1;
  try {
    fits |= link_of(link)->allows_micro_batches();
  } catch (const InputError& error) {
    throw InputError("{}: {}", key, error.what());
  }
  if (fits) return;
  if (slots_of(link) == Slots::classes) {
    throw InputError(
        "{}: feedback \"{}\" changes with every message and expects pipeline.micro_batches = 1, found {}", key,
        link.feedback, micro_batches);
  }
  throw InputError("{}: feedback \"{}\" with {} micro-batches expects a codec of scope sample, found \"{}\"",
                   key, link.feedback, micro_batches, link.codec);
}

/// `key` is the one that asks for the fill.
void check_fill(std::string_view key, const StoreOptions& store, const CompressionOptions& options) {
  if (!store.fills_early()) return;
  if (options.start_epoch == 0) {
    throw InputError("{}: \"warmup\" expects compression.start_epoch >= 1, found 0", key);
  }
  if (!options.start_from.empty()) {
    throw InputError(
        "{}: \"warmup\" expects a run that makes the epochs before compression.start_epoch itself, found "
        "compression.start_from \"{}\"",
        key, options.start_from);
  }
}

/// Where a store lies is the machine's matter, and no part of what all processes must have alike.
void check_store(const std::string& key, const LinkOptions& link, const CompressionOptions& options) {
  const auto made = link_of(link);
  const StoreOptions* store = made->store();
  if (store == nullptr) return;
  check_fill(key, *store, options);
  if (store->place == StoreOptions().place && store->folder.empty()) return;
  throw InputError("{}: expected place and folder in compression.store, found \"{}\"", key, link.feedback);
}

/// The feedback of which this holds, around the codec.
template <class Holds>
std::vector<std::string> feedback_with(const std::shared_ptr<const Codec>& codec, const Holds& holds) {
  std::vector<std::string> names;
  for (const LinkInfo& info : link_list()) {
    try {
      if (holds(*make_link(codec, info.samples.front()))) names.emplace_back(info.name);
    } catch (const InputError&) {  // a link that cannot serve the codec
    }
  }
  return names;
}

/// Whether a message is the codec's or goes in full, and nothing else.
bool serves_replicas(const Link& link) { return link.sends_codec_messages() || link.needs_previous(); }

void check_replicas(const LinkOptions& link) {
  check_link("compression.replicas", link, 1);  // one message per step, all of a stage
  if (!serves_replicas(*link_of(link))) {
    throw InputError("compression.replicas.feedback: expected one of: {}; found \"{}\"",
                     list_of(feedback_with(make_codec(link.codec), serves_replicas)), link.feedback);
  }
  if (!link_of(link)->serves_weights()) {
    throw InputError(
        "compression.replicas.feedback: expected slots=rows, found \"{}\"; a gradient of weights is no "
        "sample's",
        link.feedback);
  }
}

void check_ladder(const AutoOptions& automatic) {
  const auto& ladder = automatic.ladder;
  if (ladder.empty()) throw InputError("compression.auto.ladder: expected at least one codec, found none");
  for (auto rung = ladder.begin(); rung != ladder.end(); ++rung) {
    std::shared_ptr<const Link> link;
    try {
      link = make_link(*rung);
    } catch (const InputError& error) {
      throw InputError("compression.auto.ladder: {}", error.what());  // which names the spec
    }
    if (link->keeps_state()) {
      throw InputError(
          "compression.auto.ladder: expected codecs that keep nothing from message to message, found \"{}\"",
          *rung);
    }
    if (std::find(ladder.begin(), rung, *rung) != rung) {
      throw InputError("compression.auto.ladder: expected each codec once, found \"{}\" twice", *rung);
    }
  }
}

/// What is asked of the directions whose codec is chosen.
void check_auto(const std::string& table, const BoundaryScheme& scheme, bool reuse_indices) {
  for (const auto& [direction, link] :
       {std::pair{"activations", scheme.activations}, std::pair{"gradients", scheme.gradients}}) {
    if (link.codec != kAutoCodec) continue;
    if (link.feedback != kNoFeedback) {
      throw InputError("{}.{}.feedback: with codec \"{}\" expected {}, found \"{}\"", table, direction,
                       kAutoCodec, kNoFeedback, link.feedback);
    }
    if (reuse_indices) {
      throw InputError("compression.reuse_indices: with codec \"{}\" expected false, found true", kAutoCodec);
    }
  }
}

void check_scheme(const std::string& table, const BoundaryScheme& scheme, const CompressionOptions& options,
                  int micro_batches) {
  check_auto(table, scheme, options.reuse_indices);
  check_link(table + ".activations", scheme.activations, micro_batches);
  check_link(table + ".gradients", scheme.gradients, micro_batches);
  if (!link_of(scheme.gradients)->serves_gradients()) {
    throw InputError(
        "{}.gradients.feedback: expected a scheme for gradients, found \"{}\", which keeps activations", table,
        scheme.gradients.feedback);
  }
  expect_no_previous(table + ".activations.feedback", *link_of(scheme.activations));
  expect_no_previous(table + ".gradients.feedback", *link_of(scheme.gradients));
  check_store(table + ".activations.feedback", scheme.activations, options);
  check_store(table + ".gradients.feedback", scheme.gradients, options);
  if (options.reuse_indices) check_index_reuse(table, scheme);
}

/// `key` is that of boundaries[place].
void check_entry(const std::string& key, std::span<const OwnBoundaryOptions> boundaries, size_t place,
                 std::span<const std::string> cuts) {
  const OwnBoundaryOptions& own = boundaries[place];
  if (std::ranges::find(cuts, own.name) == cuts.end()) {
    throw InputError("{}.name: expected one of model.cuts, which are {}; found \"{}\"{}", key,
                     cuts.empty() ? "none" : list_of(cuts), own.name, suggestion(own.name, cuts));
  }
  if (std::ranges::find(boundaries.first(place), own.name, &OwnBoundaryOptions::name) !=
      boundaries.begin() + static_cast<ptrdiff_t>(place)) {
    throw InputError("{}.name: expected each boundary once, found \"{}\" twice", key, own.name);
  }
  if (own.activations == OwnLinkOptions{} && own.gradients == OwnLinkOptions{}) {
    throw InputError("{}: expected a codec or feedback of activations or gradients, found none", key);
  }
}

template <class Holds>
bool any_activations(const CompressionOptions& options, std::span<const std::string> cuts, const Holds& holds) {
  return std::ranges::any_of(cuts, [&](const auto& cut) { return holds(options.at(cut).activations); });
}

bool any_link_has(const CompressionOptions& options, std::span<const std::string> cuts, Slots slots) {
  return std::ranges::any_of(cuts, [&](const auto& cut) {
    const auto [activations, gradients] = options.at(cut);
    return slots_of(activations) == slots || slots_of(gradients) == slots;
  });
}

}  // namespace

bool chooses_codecs(const CompressionOptions& options) {
  return options.activations.codec == kAutoCodec || options.gradients.codec == kAutoCodec ||
         std::ranges::any_of(options.boundaries, [](const OwnBoundaryOptions& own) {
           return own.activations.codec == kAutoCodec || own.gradients.codec == kAutoCodec;
         });
}

CompressionOptions with_strongest_codecs(CompressionOptions options) {
  const auto replace = [&](auto& codec) {
    if (codec == kAutoCodec) codec = options.automatic.ladder.back();
  };
  replace(options.activations.codec);
  replace(options.gradients.codec);
  for (auto& own : options.boundaries) {
    replace(own.activations.codec);
    replace(own.gradients.codec);
  }
  return options;
}

BoundaryScheme CompressionOptions::at(std::string_view boundary) const {
  const auto own = std::ranges::find(boundaries, boundary, &OwnBoundaryOptions::name);
  if (own == boundaries.end()) return {activations, gradients};
  return {with(activations, own->activations), with(gradients, own->gradients)};
}

void check_index_reuse(const std::string& table, const BoundaryScheme& scheme) {
  const auto expect = [&](bool holds, std::string_view key, std::string_view what, const std::string& found) {
    if (!holds) {
      throw InputError("{}.{}: with reuse_indices expected {}, found \"{}\"", table, key, what, found);
    }
  };
  const auto& [activations, gradients] = scheme;
  const auto forward = make_codec(activations.codec);
  const auto backward = make_codec(gradients.codec);
  expect(forward->sparsifier() != nullptr, "activations.codec", "a codec that selects", activations.codec);
  expect(backward->sparsifier() != nullptr &&
             backward->sparsifier()->selection() == forward->sparsifier()->selection(),
         "gradients.codec",
         "a codec that selects the same share and scope as the activations', by the same operator",
         gradients.codec);
  expect(link_of(activations)->sends_codec_messages(), "activations.feedback",
         "one of: " +
             list_of(feedback_with(forward, [](const Link& link) { return link.sends_codec_messages(); })),
         activations.feedback);
  expect(slots_of(gradients) == Slots::none, "gradients.feedback", kNoFeedback, gradients.feedback);
}

void check(const CompressionOptions& options, std::span<const std::string> cuts, int micro_batches) {
  check_ladder(options.automatic);
  check_scheme("compression", {options.activations, options.gradients}, options, micro_batches);
  for (size_t i = 0; i < options.boundaries.size(); ++i) {
    const std::string key = fmt::format("compression.boundaries[{}]", i);
    check_entry(key, options.boundaries, i, cuts);
    check_scheme(key, options.at(options.boundaries[i].name), options, micro_batches);
  }
  if (options.end_epoch != 0 && options.end_epoch <= options.start_epoch) {
    throw InputError("compression.end_epoch: expected 0, or more than compression.start_epoch = {}, found {}",
                     options.start_epoch, options.end_epoch);
  }
  check_fill("compression.store.fill", options.store, options);
  check_replicas(options.replicas);
  check_previous(options, cuts);
}

void check_previous(const CompressionOptions& options, std::span<const std::string> cuts) {
  if (!link_of(options.replicas)->needs_previous()) return;
  const auto expect_none = [&](const std::string& boundary, std::string_view direction,
                               const LinkOptions& link) {
    if (!link_of(link)->keeps_state()) return;
    throw InputError(
        "compression.replicas.feedback: \"{}\" takes every batch over the boundaries twice, so that their "
        "links are expected to keep nothing from message to message; compression.{} of boundary {} is codec "
        "\"{}\", feedback \"{}\"",
        options.replicas.feedback, direction, boundary, link.codec, link.feedback);
  };
  for (const auto& cut : cuts) {
    const auto [activations, gradients] = options.at(cut);
    expect_none(cut, "activations", activations);
    expect_none(cut, "gradients", gradients);
  }
}

bool compresses_activations(const CompressionOptions& options, std::span<const std::string> cuts) {
  return any_activations(options, cuts, [](const LinkOptions& link) { return link != LinkOptions{}; });
}

bool has_feedback(const CompressionOptions& options, std::span<const std::string> cuts) {
  return any_activations(options, cuts, [](const LinkOptions& link) { return slots_of(link) != Slots::none; });
}

bool keeps_rows(const CompressionOptions& options, std::span<const std::string> cuts) {
  return any_activations(options, cuts, [](const LinkOptions& link) { return slots_of(link) == Slots::rows; });
}

bool keeps_samples(const CompressionOptions& options, std::span<const std::string> cuts) {
  return any_link_has(options, cuts, Slots::samples);
}

bool keeps_classes(const CompressionOptions& options, std::span<const std::string> cuts) {
  return any_link_has(options, cuts, Slots::classes);
}

}  // namespace strait
