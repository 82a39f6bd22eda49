#include "strait/transport/tcp/stream.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace strait::tcp {
namespace {

class PlainStream : public Stream {
 public:
  explicit PlainStream(Socket socket) : Stream(std::move(socket)) {}

  Progress read(std::span<std::byte> space) override {
    const ssize_t got = recv(socket().descriptor(), space.data(), space.size(), 0);
    if (got == 0) return closed(kConnectionClosed);
    return progress(got, Progress::State::wants_read);
  }

  Progress write(std::span<const std::byte> bytes) override {
    return progress(send(socket().descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                    Progress::State::wants_write);
  }

 private:
  Progress progress(ssize_t moved, Progress::State otherwise) {
    if (moved >= 0) return {.bytes = static_cast<size_t>(moved)};
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {.state = otherwise};
    return closed(errno == ECONNRESET || errno == EPIPE ? kConnectionClosed : std::strerror(errno));
  }
};

}  // namespace

std::unique_ptr<Stream> make_plain_stream(Socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace strait::tcp
