#pragma once

#include <memory>
#include <string>

#include "strait/transport/tcp/stream.h"

namespace strait::tcp {

/// Which side of a connection this is.
enum class Side { dialer, listener };

/// What encrypts and authenticates connections: TLS 1.3 with a key that both sides know beforehand (RFC 8446,
/// 2.2) and a Diffie-Hellman exchange besides, so that who learns the key later cannot read what was recorded.
/// There are no certificates: who knows the secret is in, and who shows a certificate instead is not.
class Tls {
 public:
  /// The key is derived from the secret, which should be one that nobody can guess.
  explicit Tls(const std::string& secret);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;

  /// A stream over a connected socket. prove() fails where the other side does not know the secret, be it the
  /// dialer or the listener; nothing is to be read or written before it has succeeded.
  std::unique_ptr<Stream> make_stream(Socket socket, Side side) const;

 private:
  class Context;
  std::unique_ptr<Context> dialer_;
  std::unique_ptr<Context> listener_;
};

}  // namespace strait::tcp
