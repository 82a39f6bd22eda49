#include "strait/transport/tcp/words.h"

#include <cstring>

#include "strait/base/error.h"
#include "strait/base/json.h"

namespace strait::tcp {

using nlohmann::json;

Buffer buffer_of(std::string_view text) {
  Buffer buffer(text.size());
  buffer.resize(text.size());
  std::memcpy(buffer.data(), text.data(), text.size());
  return buffer;
}

std::string text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.size()};
}

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json parse(const std::string& text) { return parse_json<WireError>(text, "what another rank says"); }

std::string text_of(const Failure& failure) {
  return text_of(json{{"rank", failure.rank},
                      {"diverged", failure.diverged},
                      {"reason", failure.reason.substr(0, kMaxReason)}});
}

Failure failure_in(const json& said, int ranks) {
  Failure failure{.rank = said.at("rank").get<int>(),
                  .diverged = said.at("diverged").get<bool>(),
                  .reason = said.at("reason").get<std::string>().substr(0, kMaxReason)};
  if (failure.rank < 0 || failure.rank >= ranks) {
    throw WireError("a failure of rank {}, expected one of {} ranks", failure.rank, ranks);
  }
  return failure;
}

}  // namespace strait::tcp
