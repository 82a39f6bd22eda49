#include "strait/transport/tcp/hello.h"

#include <nlohmann/json.hpp>

#include "strait/base/error.h"
#include "strait/transport/tcp/words.h"

namespace strait::tcp {
namespace {

using nlohmann::json;

/// What `read` makes of the text. Throws WireError where something is missing or of another type.
template <class Said>
Said said_in(const std::string& text, Said (*read)(const json& said)) {
  const json said = parse(text);
  try {
    return read(said);
  } catch (const json::exception& error) {
    throw WireError("what another rank says: {}", error.what());
  }
}

}  // namespace

std::string Hello::text() const {
  json said = {{"attempt", attempt},
               {"rank", rank},
               {"ranks", ranks},
               {"to", to},
               {"token", token},
               {"relayed", relayed},
               {"connections", connections},
               {"received", received}};
  if (joins) said["joins"] = *joins;
  return text_of(said);
}

Hello Hello::parse(const std::string& text) {
  return said_in<Hello>(text, [](const json& said) {
    Hello hello{.attempt = said.at("attempt").get<std::string>(),
                .rank = said.at("rank").get<int>(),
                .ranks = said.at("ranks").get<int>(),
                .to = said.at("to").get<int>(),
                .token = said.at("token").get<std::string>(),
                .relayed = said.at("relayed").get<bool>(),
                .connections = said.value("connections", 1),
                .received = said.at("received").get<uint64_t>(),
                .joins = std::nullopt};
    if (said.contains("joins")) hello.joins = said.at("joins").get<uint64_t>();
    return hello;
  });
}

std::string Welcome::text() const {
  if (refused) return text_of(json{{"refused", *refused}});
  return text_of(
      json{{"token", token}, {"connections", connections}, {"received", received}, {"bundle", bundle}});
}

Welcome Welcome::parse(const std::string& text) {
  return said_in<Welcome>(text, [](const json& said) {
    Welcome welcome;
    if (said.contains("refused")) {
      welcome.refused = said.at("refused").get<std::string>();
      return welcome;
    }
    welcome.token = said.at("token").get<std::string>();
    welcome.connections = said.value("connections", 1);
    welcome.received = said.at("received").get<uint64_t>();
    welcome.bundle = said.value("bundle", uint64_t{0});
    return welcome;
  });
}

std::string joined_text(const std::string& token) { return text_of(json{{"token", token}}); }

}  // namespace strait::tcp
