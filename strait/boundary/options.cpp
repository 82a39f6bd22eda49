#include "strait/boundary/options.h"

#include <memory>
#include <string_view>
#include <vector>

#include "strait/base/text.h"
#include "strait/codecs/sparsifier.h"
#include "strait/links/link.h"

namespace strait {
namespace {

std::shared_ptr<const Link> link_of(const LinkOptions& link) { return make_link(link.codec, link.feedback); }

Link::Slots slots_of(const LinkOptions& link) { return link_of(link)->slots(); }

void check_link(const std::string& key, const LinkOptions& link, int micro_batches) {
  auto slots = Link::Slots::none;
  try {
    slots = slots_of(link);
  } catch (const InputError& error) {
    throw InputError("compression.{}: {}", key, error.what());
  }
  if (slots == Link::Slots::rows && micro_batches > 1 && !make_codec(link.codec)->is_row_wise()) {
    throw InputError(
        "compression.{}: feedback \"{}\" with {} micro-batches expects a codec of scope sample, found \"{}\"",
        key, link.feedback, micro_batches, link.codec);
  }
}

void check_fill(const CompressionOptions& options) {
  if (options.store.fill != "warmup") return;
  if (options.start_epoch == 0) {
    throw InputError("compression.store.fill: \"warmup\" expects compression.start_epoch >= 1, found 0");
  }
  if (!options.start_from.empty()) {
    throw InputError(
        "compression.store.fill: \"warmup\" expects a run that makes the epochs before compression.start_epoch "
        "itself, found compression.start_from \"{}\"",
        options.start_from);
  }
}

/// The feedback whose messages are those of the codec alone.
std::vector<std::string> with_codec_messages(const std::shared_ptr<const Codec>& codec) {
  std::vector<std::string> names;
  for (const auto& name : link_names()) {
    try {
      if (make_link(codec, name)->sends_codec_messages()) names.push_back(name);
    } catch (const InputError&) {  // a link that cannot serve the codec
    }
  }
  return names;
}

void check_replicas(const LinkOptions& link) {
  check_link("replicas", link, 1);  // one message per step, all of a stage
  if (link_of(link)->sends_codec_messages()) return;
  throw InputError("compression.replicas.feedback: expected one of: {}; found \"{}\"",
                   list_of(with_codec_messages(make_codec(link.codec))), link.feedback);
}

void check_reuse(const CompressionOptions& options) {
  const auto expect = [](bool holds, std::string_view key, std::string_view what, const std::string& found) {
    if (!holds) {
      throw InputError("compression.{}: with reuse_indices expected {}, found \"{}\"", key, what, found);
    }
  };
  const auto& [activations, gradients] = std::pair(options.activations, options.gradients);
  const auto forward = make_codec(activations.codec);
  const auto backward = make_codec(gradients.codec);
  expect(forward->sparsifier() != nullptr, "activations.codec", "a codec that selects", activations.codec);
  expect(backward->sparsifier() != nullptr &&
             backward->sparsifier()->selection() == forward->sparsifier()->selection(),
         "gradients.codec", "a codec that selects the same share and scope as the activations'",
         gradients.codec);
  expect(link_of(activations)->sends_codec_messages(), "activations.feedback",
         "one of: " + list_of(with_codec_messages(forward)), activations.feedback);
  expect(slots_of(gradients) == Link::Slots::none, "gradients.feedback", "none", gradients.feedback);
}

}  // namespace

void check(const CompressionOptions& options, int micro_batches) {
  check_link("activations", options.activations, micro_batches);
  check_link("gradients", options.gradients, micro_batches);
  if (slots_of(options.gradients) == Link::Slots::samples) {
    throw InputError(
        "compression.gradients.feedback: expected a scheme for gradients, found \"{}\", which keeps "
        "activations",
        options.gradients.feedback);
  }
  check_fill(options);
  check_replicas(options.replicas);
  if (options.reuse_indices) check_reuse(options);
}

bool keeps_samples(const CompressionOptions& options) {
  return slots_of(options.activations) == Link::Slots::samples;
}

bool keeps_rows(const CompressionOptions& options) {
  return slots_of(options.activations) == Link::Slots::rows;
}

}  // namespace strait
