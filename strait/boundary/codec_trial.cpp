#include "strait/boundary/codec_trial.h"

#include "strait/base/times.h"
#include "strait/boundary/channel_endpoints.h"
#include "strait/codecs/error_statistics.h"

namespace strait {

CodecTrial try_link(const KeptMessage& message, const std::shared_ptr<const Link>& link) {
  constexpr Repetitions kRepetitions{.warm_up = 1, .least = 3, .most = 9, .seconds = 0.02};
  const MessageContext& context = message.context;
  ChannelEndpoints channel(ChannelSpec{.boundary_name = "of a trial",
                                       .boundary = context.boundary,
                                       .direction = context.direction,
                                       .link = link});
  CodecTrial trial;
  Times encode;
  Times decode;
  at::Tensor received;
  repeat(kRepetitions, [&] {
    received = channel.cross(message.tensor, context);
    const Traffic traffic = channel.take_traffic();
    encode.add(traffic.encode_seconds);
    decode.add(traffic.decode_seconds);
    trial.bytes = static_cast<double>(traffic.wire_bytes);
  });
  trial.encode_seconds = encode.median();
  trial.decode_seconds = decode.median();
  if (!link->carries_integers()) {
    trial.relative_error = ErrorStatistics(message.tensor, received).relative_error();
  }
  return trial;
}

}  // namespace strait
