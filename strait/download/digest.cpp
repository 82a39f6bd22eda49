#include "strait/download/digest.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <fstream>
#include <vector>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr size_t kDigestBlockBytes = size_t{1} << 20;

const EVP_MD* algorithm(DigestKind kind) {
  switch (kind) {
    case DigestKind::md5:
      return EVP_md5();
    case DigestKind::sha1:
      return EVP_sha1();
    case DigestKind::sha256:
      return EVP_sha256();
  }
  return nullptr;
}

}  // namespace

struct Hasher::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  State() = default;
  ~State() { EVP_MD_CTX_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

std::string_view to_string(DigestKind kind) {
  constexpr std::array<std::string_view, 3> kNames = {"md5", "sha1", "sha256"};
  return kNames[static_cast<size_t>(kind)];
}

Hasher::Hasher(DigestKind kind) : kind_(kind), state_(std::make_unique<State>()) {
  // A machine in FIPS mode has no md5.
  if (state_->context == nullptr || EVP_DigestInit_ex(state_->context, algorithm(kind), nullptr) != 1) {
    throw Error("the system's OpenSSL cannot compute {} sums", to_string(kind));
  }
}

Hasher::~Hasher() = default;

void Hasher::update(std::span<const std::byte> bytes) {
  STRAIT_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) == 1, "digest failed");
}

Checksum Hasher::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> sum{};
  unsigned int size = 0;
  STRAIT_CHECK(EVP_DigestFinal_ex(state_->context, sum.data(), &size) == 1, "digest failed");
  Checksum result{kind_, ""};
  for (unsigned int i = 0; i < size; ++i) result.hex += fmt::format("{:02x}", sum[i]);
  return result;
}

Checksum file_checksum(const std::filesystem::path& path, DigestKind kind) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError("{}: cannot be opened", path.string());
  Hasher hasher(kind);
  std::vector<char> block(kDigestBlockBytes);
  while (in.good()) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    hasher.update(std::as_bytes(std::span(block.data(), static_cast<size_t>(in.gcount()))));
  }
  if (in.bad()) throw InputError("{}: cannot be read", path.string());
  return hasher.finish();
}

}  // namespace strait
