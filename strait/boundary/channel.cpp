#include "strait/boundary/channel.h"

#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "strait/base/text.h"

namespace strait {
namespace {

std::string describe(const ChannelSpec& spec, const MessageContext& context) {
  return fmt::format("boundary {}, {}, micro-batch {}, step {}", spec.boundary_name, to_string(spec.direction),
                     context.micro_batch, context.step);
}

/// What LibTorch, a kernel's launch or the device says that a message met, such as that memory is out.
Error failure_on_device(const ChannelSpec& spec, const Link& link, const MessageMeta& meta,
                        const MessageContext& context, const std::exception& error) {
  return Error("{}: codec {}, message of {} on {}: {}", describe(spec, context), link.codec().spec(),
               shape_text(meta.shape), context.device.str(), reason_text(error));
}

/// Does the work on a message, which errors then name.
template <class Work>
auto named(const ChannelSpec& spec, const Link& link, const MessageMeta& meta, const MessageContext& context,
           const Work& work) {
  try {
    return work();
  } catch (const WireError& error) {
    throw WireError("{}: {}", describe(spec, context), error.what());
  } catch (const NumericError& error) {
    throw NumericError("{}: {}", describe(spec, context), error.what());
  } catch (const InputError& error) {
    throw InputError("{}: {}", describe(spec, context), error.what());
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    throw failure_on_device(spec, link, meta, context, error);
  }
}

/// Bytes of a message of this shape. Throws InputError that names the boundary where the codec does not take
/// it.
PayloadSize payload_size(const ChannelSpec& spec, const Link& link, const MessageMeta& meta) {
  try {
    return link.payload_size(meta);
  } catch (const InputError& error) {
    throw InputError("boundary {}, {}: {}", spec.boundary_name, to_string(spec.direction), error.what());
  }
}

/// Whether a message that is compressed goes through the trained link, not through the bare operator.
bool uses_link(MessageMode mode) { return mode.training || mode.evaluation != EvaluationMode::plain; }

/// Whether such a message updates the link's state. A test sample has no buffer among those of the training
/// set, so that there is nothing to move.
bool moves_state(const Link& link, MessageMode mode) {
  return mode.training || (mode.evaluation == EvaluationMode::live && link.slots() == Slots::rows);
}

/// The link whose numbers stand in the frame header for a message of this mode.
const Link& link_for(const ChannelSpec& spec, const OtherLinks& others, MessageMode mode) {
  if (!mode.compressed) return *others.uncompressed;
  return uses_link(mode) ? *spec.link : *others.bare;
}

FrameHeader header_for(const ChannelSpec& spec, const Link& link, const MessageContext& context,
                       uint64_t sequence) {
  return {.codec = link.codec().id(),
          .link = link.id(),
          .boundary = spec.boundary,
          .direction = spec.direction,
          .micro_batch = context.micro_batch,
          .step = static_cast<uint16_t>(context.step),
          .batch = context.batch,
          .sequence = sequence,
          .payload_size = 0};
}

/// Whether the indices of such a message are those of its boundary's reused indices.
bool shares_indices(const ChannelSpec& spec, MessageMode mode) {
  return spec.indices != nullptr && mode.training && mode.compressed;
}

/// Adds what the channel itself knows to what the executor says of a message.
MessageContext complete(MessageContext context, const ChannelSpec& spec, MessageMode mode) {
  context.boundary = spec.boundary;
  context.direction = spec.direction;
  if (!shares_indices(spec, mode)) return context;
  if (spec.direction == Direction::activation) {
    context.wants_indices = true;
  } else {
    context.indices = spec.indices->find(context.micro_batch);
  }
  return context;
}

/// Passes positions from an activation to the gradient that reuses them. A gradient that was refused does not
/// come here, and its positions stay for another.
void pass_indices(const ChannelSpec& spec, MessageMode mode, const MessageContext& context, IndexSet indices) {
  if (!shares_indices(spec, mode)) return;
  if (spec.direction == Direction::activation) {
    spec.indices->keep(context.micro_batch, std::move(indices));
  } else {
    spec.indices->drop(context.micro_batch);
  }
}

KeptMessage kept(const at::Tensor& x, const MessageContext& context) {
  return {x.detach().clone(),
          {.seed = context.seed,
           .boundary = context.boundary,
           .direction = context.direction,
           .step = context.step,
           .micro_batch = context.micro_batch,
           .first_row = context.first_row}};
}

/// Whether a message's payload, of this size, can stay on the context's device.
bool stays_there(const Link& link, const PayloadSize& size, const MessageContext& context) {
  return !context.device.is_cpu() && size.exact && size.bound > 0 && link.sends_codec_messages() &&
         !link.carries_integers() && !context.wants_indices;
}

bool has_payload(const MessageContext& context) {
  return context.payload != nullptr && context.payload->defined();
}

/// Before a channel's link is replaced.
void expect_no_state(const Link& before, const Link& after) {
  STRAIT_CHECK(!before.keeps_state() && !after.keeps_state(), "a link that keeps state cannot be replaced");
}

}  // namespace

OtherLinks::OtherLinks(const ChannelSpec& spec)
    : uncompressed(spec.link->carries_integers() ? spec.link : make_link(kUncompressed)),
      bare(spec.link->carries_integers() ? spec.link : make_link(spec.link->shared_codec())) {}

Sender::Sender(ChannelSpec spec, std::unique_ptr<Encoder> encoder)
    : spec_(std::move(spec)),
      others_(spec_),
      encoder_(std::move(encoder)),
      uncompressed_(others_.uncompressed->make_encoder()),
      bare_(others_.bare->make_encoder()),
      diagnostics_(spec_.diagnostics) {}

Buffer Sender::encode(const at::Tensor& x, MessageContext context, MessageMode mode, FrameCheck check,
                      at::Tensor* there) {
  const auto begin = DeviceMoment::behind_all(x.device());  // and behind the pass that makes x
  context = complete(context, spec_, mode);
  context.device = x.device();
  context.wants_received = mode.training && mode.diagnosed && diagnostics_.measures(context);
  const Link& link = link_for(spec_, others_, mode);
  const PayloadSize size = payload_size(spec_, link, meta_of(x));
  if (there != nullptr && stays_there(link, size, context)) context.payload = there;
  Buffer frame(kFrameHeaderSize + size.bound);
  frame.resize(frame.capacity());
  ByteWriter out(frame.bytes().subspan(kFrameHeaderSize));
  MessageReport report =
      named(spec_, link, meta_of(x), context, [&] { return encode_payload(x, context, mode, out); });
  pass_indices(spec_, mode, context, std::move(report.indices));
  frame.resize(kFrameHeaderSize + out.used());
  seal_frame(frame.bytes(), header_for(spec_, link, context, sequence_++), check);
  if (mode.training) {
    traffic_.messages += 1;
    traffic_.raw_bytes +=
        link.carries_integers() ? out.used() : static_cast<uint64_t>(x.numel()) * sizeof(float);
    traffic_.wire_bytes += frame.size() + (has_payload(context) ? context.payload->nbytes() : 0);
    traffic_.encode_seconds += begin.seconds_until(DeviceMoment::behind_all(x.device()));
    if (mode.diagnosed) diagnostics_.add(x, context, report);
  }
  if (keeps_ && mode.is_kept()) kept_.push_back(kept(x, context));
  return frame;
}

MessageReport Sender::encode_payload(const at::Tensor& x, const MessageContext& context, MessageMode mode,
                                     ByteWriter& out) {
  MessageReport report;
  if (!mode.compressed) {
    report = uncompressed_->encode(x, context, out);
    if (mode.training && !has_begun_) encoder_->observe(x, context);
  } else if (moves_state(*spec_.link, mode)) {
    has_begun_ = has_begun_ || mode.training;
    report = encoder_->encode(x, context, out);
  } else if (uses_link(mode)) {
    encoder_->encode_frozen(x, context, out);
  } else if (mode.trial) {
    const ByteWriter empty = out;
    try {
      bare_->encode_frozen(x, context, out);
    } catch (const NumericError&) {
      out = empty;
      if (context.payload != nullptr) context.payload->reset();
      bare_->encode_frozen(at::zeros_like(x), context, out);
    }
  } else {
    bare_->encode_frozen(x, context, out);
  }
  return report;
}

bool Sender::needs_previous(MessageContext context, MessageMode mode) const {
  return mode.compressed && uses_link(mode) && encoder_->needs_previous(complete(context, spec_, mode));
}

void Sender::set_link(std::shared_ptr<const Link> link) {
  expect_no_state(*spec_.link, *link);
  spec_.link = std::move(link);
  others_ = OtherLinks(spec_);
  encoder_ = spec_.link->make_encoder();
  bare_ = others_.bare->make_encoder();
}

std::vector<KeptMessage> Sender::take_kept() {
  keeps_ = false;
  return std::exchange(kept_, {});
}

Traffic Sender::take_traffic() { return std::exchange(traffic_, {}); }

Receiver::Receiver(ChannelSpec spec, std::unique_ptr<Decoder> decoder)
    : spec_(std::move(spec)),
      others_(spec_),
      decoder_(std::move(decoder)),
      uncompressed_(others_.uncompressed->make_decoder()),
      bare_(others_.bare->make_decoder()) {}

size_t Receiver::frame_bound(const MessageMeta& meta) const {
  return kFrameHeaderSize +
         std::max(others_.uncompressed->payload_size(meta).bound, payload_size(spec_, *spec_.link, meta).bound);
}

PayloadSize Receiver::frame_size(const MessageMeta& meta, MessageMode mode) const {
  PayloadSize size = payload_size(spec_, link_for(spec_, others_, mode), meta);
  size.bound += kFrameHeaderSize;
  return size;
}

size_t Receiver::bytes_there(const Buffer& frame, const MessageMeta& meta, MessageContext context,
                             MessageMode mode) const {
  if (frame.size() != kFrameHeaderSize) return 0;
  const Link& link = link_for(spec_, others_, mode);
  const PayloadSize size = payload_size(spec_, link, meta);
  return stays_there(link, size, complete(context, spec_, mode)) ? size.bound : 0;
}

at::Tensor Receiver::decode(Buffer frame, const MessageMeta& meta, MessageContext context, MessageMode mode,
                            FrameCheck check, at::Tensor* there) {
  const auto begin = DeviceMoment::behind_all(context.device);
  context = complete(context, spec_, mode);
  const Link& link = link_for(spec_, others_, mode);
  return named(spec_, link, meta, context, [&] {
    const auto owned = std::make_shared<Buffer>(std::move(frame));
    const Frame parsed = parse_frame(owned->bytes(), check);
    expect_header(parsed.header, header_for(spec_, link, context, sequence_));
    ByteReader in(parsed.payload, owned);
    context.payload = there;
    Decoded message;
    if (!mode.compressed) {
      message = uncompressed_->decode(in, meta, context);
      if (mode.training && !has_begun_) decoder_->observe(message.tensor, context);
    } else if (moves_state(*spec_.link, mode)) {
      has_begun_ = has_begun_ || mode.training;
      message = decoder_->decode(in, meta, context);
    } else {
      message.tensor = (uses_link(mode) ? *decoder_ : *bare_).decode_frozen(in, meta, context);
    }
    pass_indices(spec_, mode, context, std::move(message.indices));
    sequence_ += 1;
    if (mode.training) {
      count_decoding();
      decoding_ = {begin, DeviceMoment::behind_all(context.device)};
    }
    if (keeps_ && mode.is_kept()) kept_.push_back(kept(message.tensor, context));
    return message.tensor;
  });
}

void Receiver::set_link(std::shared_ptr<const Link> link) {
  expect_no_state(*spec_.link, *link);
  spec_.link = std::move(link);
  others_ = OtherLinks(spec_);
  decoder_ = spec_.link->make_decoder();
  bare_ = others_.bare->make_decoder();
}

std::vector<KeptMessage> Receiver::take_kept() {
  keeps_ = false;
  return std::exchange(kept_, {});
}

Traffic Receiver::take_traffic() {
  count_decoding();
  return std::exchange(traffic_, {});
}

void Receiver::count_decoding() {
  if (decoding_) traffic_.decode_seconds += decoding_->first.seconds_until(decoding_->second);
  decoding_.reset();
}

}  // namespace strait
