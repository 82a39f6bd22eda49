#include "strait/transport/tcp/secret.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "strait/base/error.h"
#include "strait/base/token.h"

namespace strait {
namespace {

constexpr size_t kMaxFile = 4096;

std::optional<std::string> variable(const char* name) {
  const char* const value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::string checked(std::string secret, const std::string& name) {
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() < kMinSecret) {
    throw InputError("{}: expected a secret of at least {} characters, found {}", name, kMinSecret,
                     secret.size());
  }
  return secret;
}

std::string secret_in(const std::string& file) {
  struct stat found {};
  const bool is_file = stat(file.c_str(), &found) == 0 && S_ISREG(found.st_mode);
  std::ifstream in;
  if (is_file) in.open(file, std::ios::binary);  // of a pipe that would wait for a writer
  if (!in.is_open()) throw InputError("{} ({}): cannot be read", file, kSecretFileVariable);
  if ((found.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    throw InputError("{} ({}): others can open it; expected a file of mode 600", file, kSecretFileVariable);
  }
  std::string text(kMaxFile + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.size() > kMaxFile) throw InputError("{}: expected at most {} bytes", file, kMaxFile);
  return checked(std::move(text), file);
}

}  // namespace

std::optional<std::string> secret_of_process() {
  if (auto secret = variable(kSecretVariable)) return checked(std::move(*secret), kSecretVariable);
  if (const auto file = variable(kSecretFileVariable)) return secret_in(*file);
  return std::nullopt;
}

std::string random_secret() { return random_token() + random_token(); }

std::string digest(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int size = 0;
  if (EVP_Digest(text.data(), text.size(), bytes.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw Error("SHA-256 is not there");
  }
  std::string digits;
  for (unsigned int i = 0; i < size; ++i) digits += fmt::format("{:02x}", bytes[i]);
  return digits;
}

}  // namespace strait
