#include "strait/download/download.h"

#include <curl/curl.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <system_error>

#include "strait/base/error.h"

namespace strait {
namespace {

constexpr int64_t kRedirectsMost = 5;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct CloseCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

/// What the callbacks of one transfer work on. They must not throw through libcurl's C frames, so they
/// note the reason and make the transfer fail.
struct Transfer {
  const DownloadOptions& options;
  std::unique_ptr<std::FILE, CloseFile> file;
  Hasher hasher;
  uint64_t received = 0;
  std::string reason;
};

size_t on_bytes(const char* data, size_t size, size_t count, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  const size_t bytes = size * count;
  if (bytes > transfer.options.bytes_most - transfer.received) {
    transfer.reason = fmt::format("has more than {} bytes", transfer.options.bytes_most);
    return 0;
  }
  if (std::fwrite(data, 1, bytes, transfer.file.get()) != bytes) {
    transfer.reason = fmt::format("cannot be stored: {}", std::strerror(errno));
    return 0;
  }
  transfer.hasher.update(std::as_bytes(std::span(data, bytes)));
  transfer.received += bytes;
  return bytes;
}

int on_progress(void* user, curl_off_t total, curl_off_t received, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(user);
  if (!transfer.options.progress) return 0;
  try {
    if (transfer.options.progress(static_cast<uint64_t>(received), static_cast<uint64_t>(total))) return 0;
    transfer.reason = "was stopped";
  } catch (const std::exception& error) {
    transfer.reason = fmt::format("was stopped: {}", error.what());
  }
  return 1;
}

void configure(CURL* curl, const std::string& url, Transfer& transfer, char* message) {
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "https,http,file");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "https,http");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, static_cast<long>(kRedirectsMost));
  curl_easy_setopt(curl, CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(transfer.options.connect_seconds));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(transfer.options.silence_seconds));
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_bytes);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, message);
}

void fetch(const std::string& url, Transfer& transfer) {
  static const CURLcode kReady = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, CloseCurl> curl(kReady == CURLE_OK ? curl_easy_init() : nullptr);
  if (!curl) throw Error("{}: libcurl cannot be started", url);
  std::array<char, CURL_ERROR_SIZE> message{};
  configure(curl.get(), url, transfer, message.data());
  const CURLcode result = curl_easy_perform(curl.get());
  if (!transfer.reason.empty()) throw Error("{}: {}", url, transfer.reason);
  if (result != CURLE_OK) {
    throw Error("{}: cannot be fetched: {}", url,
                message[0] != '\0' ? message.data() : curl_easy_strerror(result));
  }
}

}  // namespace

void download(const std::string& url, const Checksum& expected, const std::filesystem::path& target,
              const DownloadOptions& options) {
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(target.c_str(), "wbx"));
  if (!file) throw Error("{}: cannot be created: {}", target.string(), std::strerror(errno));
  Transfer transfer{options, std::move(file), Hasher(expected.kind), 0, ""};
  try {
    fetch(url, transfer);
    if (std::fclose(transfer.file.release()) != 0) {
      throw Error("{}: cannot be stored: {}", target.string(), std::strerror(errno));
    }
    const Checksum found = transfer.hasher.finish();
    if (found != expected) {
      throw Error("{}: has the {} sum {}, expected {} ({} bytes received)", url, to_string(expected.kind),
                  found.hex, expected.hex, transfer.received);
    }
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove(target, ignored);
    throw;
  }
}

}  // namespace strait
