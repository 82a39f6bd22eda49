#pragma once

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <memory>
#include <string>

#include "strait/base/error.h"
#include "strait/transport/socket.h"

namespace strait::test {

/// Who listens in a rank's place and knows no secret: a server of TLS 1.3 that passes over the offered key and
/// shows a certificate, which it has made for itself.
class TlsImpostor {
 public:
  /// `socket`: somebody who has connected.
  explicit TlsImpostor(Socket socket)
      : socket_(std::move(socket)),
        context_(SSL_CTX_new(TLS_server_method())),
        connection_(make_connection()) {}

  /// Goes on as far as it can without waiting. False: the other side has gone.
  bool turn() {
    if (!is_believed_) {
      const int result = SSL_accept(connection_.get());
      is_believed_ = result == 1;
      return is_believed_ || SSL_get_error(connection_.get(), result) == SSL_ERROR_WANT_READ;
    }
    std::array<char, 4096> bytes{};
    const int got = SSL_read(connection_.get(), bytes.data(), static_cast<int>(bytes.size()));
    if (got > 0) heard_.append(bytes.data(), static_cast<size_t>(got));
    return got > 0 || SSL_get_error(connection_.get(), got) == SSL_ERROR_WANT_READ;
  }

  /// Whether the other side has gone through the handshake to its end.
  bool is_believed() const { return is_believed_; }

  /// What the other side has said behind the handshake.
  const std::string& heard() const { return heard_; }

 private:
  template <class Type, auto kFree>
  struct Freed {
    void operator()(Type* object) const { kFree(object); }
  };
  template <class Type, auto kFree>
  using Owned = std::unique_ptr<Type, Freed<Type, kFree>>;

  static void require(bool ok) {
    if (!ok) throw Error("OpenSSL makes no impostor");
  }

  Owned<SSL, SSL_free> make_connection() const {
    const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
    const Owned<X509, X509_free> certificate(X509_new());
    require(context_ && key && certificate);
    X509_NAME* const name = X509_get_subject_name(certificate.get());
    const std::array<unsigned char, 6> text = {'r', 'a', 'n', 'k', ' ', '0'};
    require(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, text.data(), text.size(), -1, 0) == 1 &&
            X509_set_issuer_name(certificate.get(), name) == 1 &&
            ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1 &&
            X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600) != nullptr &&
            X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600) != nullptr &&
            X509_set_pubkey(certificate.get(), key.get()) == 1 &&
            X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0 &&
            SSL_CTX_use_certificate(context_.get(), certificate.get()) == 1 &&
            SSL_CTX_use_PrivateKey(context_.get(), key.get()) == 1);
    Owned<SSL, SSL_free> connection(SSL_new(context_.get()));
    require(connection && SSL_set_fd(connection.get(), socket_.descriptor()) == 1);
    return connection;
  }

  Socket socket_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> connection_;
  bool is_believed_ = false;
  std::string heard_;
};

}  // namespace strait::test
