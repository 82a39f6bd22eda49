#include "strait/transport/tcp/tls.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "strait/base/error.h"

namespace strait::tcp {
namespace {

using Key = std::array<unsigned char, 32>;

constexpr std::string_view kIdentity = "strait";              // what the dialer says that it knows
constexpr std::string_view kDerivation = "strait tls 1 key";  // tells the key from others of the same secret
constexpr const char* kCipher = "TLS_AES_128_GCM_SHA256";     // the fastest here; a key belongs to its hash
constexpr size_t kReadAhead = size_t{64} << 10;               // several records at a time
constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;

template <class Type, auto kFree>
struct Freed {
  void operator()(Type* object) const { kFree(object); }
};
template <class Type, auto kFree>
using Owned = std::unique_ptr<Type, Freed<Type, kFree>>;

/// The last thing that OpenSSL complained of.
std::string complaint() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "it broke off" : reason;
}

void require(bool ok, const char* what) {
  if (!ok) throw Error("TLS: {}: {}", what, complaint());
}

Key derive(const std::string& secret) {
  const Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> context(EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr));
  Key key{};
  size_t size = key.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(secret.data());
  const auto* info = reinterpret_cast<const unsigned char*>(kDerivation.data());
  require(context && EVP_PKEY_derive_init(context.get()) > 0 &&
              EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) > 0 &&
              EVP_PKEY_CTX_set1_hkdf_key(context.get(), bytes, static_cast<int>(secret.size())) > 0 &&
              EVP_PKEY_CTX_add1_hkdf_info(context.get(), info, static_cast<int>(kDerivation.size())) > 0 &&
              EVP_PKEY_derive(context.get(), key.data(), &size) > 0,
          "the secret gives no key");
  return key;
}

}  // namespace

/// The settings of one side's connections.
class Tls::Context {
 public:
  Context(const Key& key, Side side)
      : key_(key), context_(SSL_CTX_new(side == Side::dialer ? TLS_client_method() : TLS_server_method())) {
    require(context_ != nullptr, "no context");
    SSL_CTX* const context = context_.get();
    SSL_CTX_set_ex_data(context, 0, this);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(context, 1);
    SSL_CTX_set_default_read_buffer_len(context, kReadAhead);
    // A listener may pass over the offered key and show a certificate instead. None is trusted.
    if (side == Side::dialer) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_psk_use_session_callback(context, use);
    SSL_CTX_set_psk_find_session_callback(context, find);
    require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
                SSL_CTX_set_ciphersuites(context, kCipher) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1,
            "settings");
  }

  Owned<SSL, SSL_free> connection() const { return Owned<SSL, SSL_free>(SSL_new(context_.get())); }

 private:
  /// A session that stands for the key.
  static Owned<SSL_SESSION, SSL_SESSION_free> session_of(SSL* connection) {
    const auto* self = static_cast<const Context*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), 0));
    constexpr std::array<unsigned char, 2> kCipherNumber = {0x13, 0x01};
    const SSL_CIPHER* cipher = SSL_CIPHER_find(connection, kCipherNumber.data());
    Owned<SSL_SESSION, SSL_SESSION_free> session(SSL_SESSION_new());
    if (cipher == nullptr || !session ||
        SSL_SESSION_set1_master_key(session.get(), self->key_.data(), self->key_.size()) != 1 ||
        SSL_SESSION_set_cipher(session.get(), cipher) != 1 ||
        SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) != 1) {
      return nullptr;
    }
    return session;
  }

  static int use(SSL* connection, const EVP_MD* /*hash*/, const unsigned char** identity, size_t* size,
                 SSL_SESSION** session) {
    *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
    *size = kIdentity.size();
    *session = session_of(connection).release();
    return *session == nullptr ? 0 : 1;
  }

  static int find(SSL* connection, const unsigned char* identity, size_t size, SSL_SESSION** session) {
    const bool known = size == kIdentity.size() && std::memcmp(identity, kIdentity.data(), size) == 0;
    *session = known ? session_of(connection).release() : nullptr;
    return 1;
  }

  Key key_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
};

namespace {

class TlsStream : public Stream {
 public:
  TlsStream(Socket socket, Owned<SSL, SSL_free> connection, Side side)
      : Stream(std::move(socket)), connection_(std::move(connection)) {
    require(connection_ && SSL_set_fd(connection_.get(), this->socket().descriptor()) == 1, "no connection");
    if (side == Side::dialer) {
      SSL_set_connect_state(connection_.get());
    } else {
      SSL_set_accept_state(connection_.get());
    }
  }

  ~TlsStream() override { SSL_shutdown(connection_.get()); }
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  Progress prove() override {
    ERR_clear_error();
    const Progress made = progress(SSL_do_handshake(connection_.get()), 0);
    const bool done = made.state == Progress::State::moved;
    if (done && SSL_session_reused(connection_.get()) != 1)
      return closed("it has not shown that it knows the secret");
    return made;
  }

  Progress read(std::span<std::byte> space) override {
    ERR_clear_error();
    size_t got = 0;
    const int result = SSL_read_ex(connection_.get(), space.data(), space.size(), &got);
    return progress(result, got);
  }

  Progress write(std::span<const std::byte> bytes) override {
    ERR_clear_error();
    // A record at a time, and one that was begun by itself: OpenSSL goes on with the next one otherwise, and
    // when that one has to wait it does not say that the other side has had the first.
    const size_t size = begun_ > 0 ? begun_ : std::min(bytes.size(), kRecord);
    size_t sent = 0;
    const int result = SSL_write_ex(connection_.get(), bytes.data(), size, &sent);
    begun_ = result > 0 ? 0 : size;
    return progress(result, sent);
  }

 private:
  Progress progress(int result, size_t bytes) {
    if (result > 0) return {.bytes = bytes};
    const int error = errno;
    switch (SSL_get_error(connection_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return {.state = Progress::State::wants_read};
      case SSL_ERROR_WANT_WRITE:
        return {.state = Progress::State::wants_write};
      case SSL_ERROR_ZERO_RETURN:
        return closed("closed in order");
      case SSL_ERROR_SSL:
        if (ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING) break;
        return closed(complaint());
      case SSL_ERROR_SYSCALL:
        if (error != 0 && error != ECONNRESET && error != EPIPE) return closed(std::strerror(error));
        break;
      default:
        break;
    }
    return closed(kConnectionClosed);
  }

  Owned<SSL, SSL_free> connection_;
  size_t begun_ = 0;  ///< bytes of a record that was not written to its end
};

}  // namespace

Tls::Tls(const std::string& secret) {
  const Key key = derive(secret);
  dialer_ = std::make_unique<Context>(key, Side::dialer);
  listener_ = std::make_unique<Context>(key, Side::listener);
}

Tls::~Tls() = default;

std::unique_ptr<Stream> Tls::make_stream(Socket socket, Side side) const {
  const Context& context = side == Side::dialer ? *dialer_ : *listener_;
  return std::make_unique<TlsStream>(std::move(socket), context.connection(), side);
}

}  // namespace strait::tcp
