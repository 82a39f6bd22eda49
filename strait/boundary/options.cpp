#include "strait/boundary/options.h"

#include <algorithm>

#include "strait/base/text.h"
#include "strait/codecs/selective.h"
#include "strait/links/link.h"

namespace strait {
namespace {

Link::Slots slots_of(const LinkOptions& link) {
  return make_link(link.feedback, make_codec(link.codec))->slots();
}

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

void check_replicas(const LinkOptions& link) {
  const std::vector<std::string> choices = {"none", "ef", "ef21"};
  if (std::ranges::find(choices, link.feedback) != choices.end()) return;
  throw InputError("compression.replicas.feedback: expected one of: {}; found \"{}\"", list_of(choices),
                   link.feedback);
}

void check_reuse(const CompressionOptions& options) {
  const auto expect = [](bool holds, std::string_view key, std::string_view what, const std::string& found) {
    if (!holds) {
      throw InputError("compression.{}: with reuse_indices expected {}, found \"{}\"", key, what, found);
    }
  };
  const auto& [activations, gradients] = std::pair(options.activations, options.gradients);
  const auto down = make_codec(activations.codec);
  const auto back = make_codec(gradients.codec);
  expect(down->selective() != nullptr, "activations.codec", "a topk codec", activations.codec);
  expect(back->selective() != nullptr && back->selective()->selection() == down->selective()->selection(),
         "gradients.codec", "a topk codec of the same share and scope as the activations'", gradients.codec);
  expect(activations.feedback != "ef-mixed" && activations.feedback != "aq-sgd", "activations.feedback",
         "none, ef or ef21, whose messages keep one set of positions", activations.feedback);
  expect(gradients.feedback == "none", "gradients.feedback", "none", gradients.feedback);
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
