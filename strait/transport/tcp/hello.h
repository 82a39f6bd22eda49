#pragma once

#include <cstdint>
#include <optional>
#include <string>

// What two processes say over a new connection, before it carries messages.
namespace strait::tcp {

// Why a process is not let in.
inline constexpr const char* kOtherAttempt = "attempt";
inline constexpr const char* kOtherSize = "ranks";
inline constexpr const char* kNoSuchRank = "rank";
inline constexpr const char* kTaken = "taken";

/// What rank 0's relay says to the two that it has brought together, who then say the rest to each other.
inline constexpr const char* kBroughtTogether = R"({"together":true})";

/// What a rank that connects says first.
struct Hello {
  std::string attempt;            ///< digest() of what tells apart the starts that could meet at one place
  int rank = 0;                   ///< of the process
  int ranks = 0;                  ///< that it expects in all
  int to = 0;                     ///< the rank that it wants, which is another one where rank 0 is to relay
  std::string token;              ///< tells the process from another that comes as the same rank
  bool relayed = false;           ///< the connection goes through rank 0
  int connections = 1;            ///< that the session may have at most
  uint64_t received = 0;          ///< bytes of the session's stream that have come
  std::optional<uint64_t> joins;  ///< the bundle that gets this connection, where it begins no session

  /// As JSON on one line.
  std::string text() const;

  /// The other way round; throws WireError for what text() does not give.
  static Hello parse(const std::string& text);
};

/// What the other side answers.
struct Welcome {
  std::optional<std::string> refused = {};  ///< why; then the rest says nothing
  std::string token = {};                   ///< as in Hello, of the process that answers
  int connections = 1;                      ///< as in Hello
  uint64_t received = 0;                    ///< as in Hello
  uint64_t bundle = 0;                      ///< the id by which further connections join this one

  /// As JSON on one line.
  std::string text() const;

  /// The other way round; throws WireError for what text() does not give.
  static Welcome parse(const std::string& text);
};

/// What a process of this token answers to a connection that joins a bundle.
std::string joined_text(const std::string& token);

}  // namespace strait::tcp
