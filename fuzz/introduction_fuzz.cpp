// What somebody says first who connects.

#include <sys/socket.h>

#include <algorithm>
#include <cstring>

#include "strait/base/error.h"
#include "strait/transport/tcp/introduction.h"

namespace {

using namespace strait::tcp;

EventLoop& loop() {
  static EventLoop one([](const std::string& reason) { STRAIT_CHECK(false, "{}", reason); });
  return one;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto bytes = std::as_bytes(std::span(data, size));
  int ends[2];
  STRAIT_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0, "no sockets");
  const strait::Socket other(ends[1]);
  bool heard = false;
  bool failed = false;
  Introduction introduction(std::make_shared<Connection>(loop(), make_plain_stream(strait::Socket(ends[0]))),
                            {.heard =
                                 [&](const std::string& text) {
                                   heard = true;
                                   constexpr size_t kHead = 12;
                                   STRAIT_CHECK(text.size() <= Introduction::kMaxText, "{} bytes", text.size());
                                   STRAIT_CHECK(size >= kHead + text.size() &&
                                                    std::memcmp(data, "strait-2", 8) == 0 &&
                                                    std::memcmp(data + kHead, text.data(), text.size()) == 0,
                                                "it heard what was not said");
                                 },
                             .failed = [&](const std::string&, bool) { failed = true; }});
  while (!bytes.empty() && !heard && !failed) {
    const auto space = introduction.space();
    const size_t part = std::min(space.size(), bytes.size());
    if (part == 0) break;
    std::ranges::copy(bytes.first(part), space.begin());
    introduction.got(part);
    bytes = bytes.subspan(part);
  }
  STRAIT_CHECK(!(heard && failed), "it heard and failed");
  return 0;
}
