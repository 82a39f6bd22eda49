#include "cli/page_server.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

namespace strait::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr size_t kVisitorsMost = 64;
constexpr size_t kRequestMost = 8192;
constexpr size_t kTurnMost = 64 * 1024;         // bytes of one visitor before the next one's turn
constexpr size_t kDiscardedMost = 1024 * 1024;  // bytes behind a request
constexpr auto kRequestLimit = 10s;
constexpr auto kAnswerLimit = 60s;
constexpr auto kCloseLimit = 1s;  // for the other side to close after its answer

/// Whether the last call only found nothing to do for now.
bool is_for_now() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

/// What a request asks for, or the status that refuses it.
struct Asked {
  std::string_view refusal;  ///< `404 Not Found`; empty where it is taken
  std::string_view path;
};

bool equal_ignoring_case(std::string_view text, std::string_view small) {
  return std::ranges::equal(text, small, {},
                            [](char c) { return std::tolower(static_cast<unsigned char>(c)); });
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

/// The part before the separator, which the text loses with it; all of it where there is none.
std::string_view take_until(std::string_view& text, std::string_view separator) {
  const size_t at = text.find(separator);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + separator.size());
  return taken;
}

/// Whether the value of a Host line is this machine, at whatever port: a tunnel may have another.
bool is_own_host(std::string_view host) {
  const std::string_view name = take_until(host, ":");
  return (name == "127.0.0.1" || equal_ignoring_case(name, "localhost")) &&
         host.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Reads a request up to its empty line: GET PATH HTTP/1.x and one Host among the lines behind.
Asked parse(std::string_view request) {
  constexpr std::string_view kBad = "400 Bad Request";
  std::string_view first = take_until(request, "\r\n");
  const std::string_view method = take_until(first, " ");
  const std::string_view path = take_until(first, " ");
  if (path.empty() || (first != "HTTP/1.1" && first != "HTTP/1.0")) return {kBad, ""};
  int hosts = 0;
  bool is_own = true;
  while (!request.empty()) {
    std::string_view value = take_until(request, "\r\n");
    if (value.empty()) break;
    if (value.find(':') == std::string_view::npos) return {kBad, ""};
    if (!equal_ignoring_case(take_until(value, ":"), "host")) continue;
    ++hosts;
    is_own = is_own && is_own_host(trimmed(value));
  }
  if (hosts != 1) return {kBad, ""};
  if (!is_own) return {"403 Forbidden", ""};
  if (method != "GET") return {"405 Method Not Allowed", ""};
  return {"", path};
}

std::string head_of(std::string_view status, std::string_view type, size_t size) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\nConnection: "
      "close\r\n"
      "X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\nX-Frame-Options: "
      "DENY\r\n"
      "{}\r\n",
      status, type, size, status.starts_with("405") ? "Allow: GET\r\n" : "");
}

}  // namespace

/// A connection: first its request comes, then the answer goes, then what still comes is thrown away until it
/// closes, so that the answer is not lost with it.
class PageServer::Visitor {
 public:
  explicit Visitor(Socket socket) : socket_(std::move(socket)), late_(steady_clock::now() + kRequestLimit) {}

  int descriptor() const { return socket_.descriptor(); }
  short events() const { return state_ == State::answering ? POLLOUT : POLLIN; }
  steady_clock::time_point late() const { return late_; }
  bool is_over() const { return state_ == State::over || steady_clock::now() >= late_; }

  /// Reads on, as far as its turn goes; returns whether the request is there, or is too long to wait for.
  bool read() {
    std::array<char, kRequestMost> space;
    for (size_t turn = 0; turn < kTurnMost && (state_ == State::asking || state_ == State::closing);
         turn += space.size()) {
      const ssize_t got = recv(socket_.descriptor(), space.data(), space.size(), 0);
      if (got < 0 && is_for_now()) return false;
      if (got <= 0) {
        state_ = State::over;
      } else if (state_ == State::asking) {
        request_.append(space.data(), static_cast<size_t>(got));
        if (is_too_long() || request_.find("\r\n\r\n") != std::string::npos) return true;
      } else {
        discarded_ += static_cast<size_t>(got);
        if (discarded_ > kDiscardedMost) state_ = State::over;
      }
    }
    return false;
  }

  bool is_too_long() const { return request_.size() > kRequestMost; }
  std::string_view request() const { return request_; }

  void answer(std::string head, std::shared_ptr<const ServedText> text) {
    head_ = std::move(head);
    text_ = std::move(text);
    state_ = State::answering;
    late_ = steady_clock::now() + kAnswerLimit;
    write();
  }

  void write() {
    while (state_ == State::answering) {
      const std::string_view content = text_ ? std::string_view(text_->content) : "";
      const std::string_view part =
          sent_ < head_.size() ? std::string_view(head_).substr(sent_) : content.substr(sent_ - head_.size());
      if (part.empty()) {
        shutdown(socket_.descriptor(), SHUT_WR);
        state_ = State::closing;
        late_ = steady_clock::now() + kCloseLimit;
        return;
      }
      const ssize_t sent = send(socket_.descriptor(), part.data(), part.size(), MSG_NOSIGNAL);
      if (sent < 0 && is_for_now()) return;
      if (sent <= 0) state_ = State::over;
      if (sent > 0) sent_ += static_cast<size_t>(sent);
    }
  }

 private:
  enum class State { asking, answering, closing, over };

  Socket socket_;
  State state_ = State::asking;
  steady_clock::time_point late_;
  std::string request_;
  std::string head_;
  std::shared_ptr<const ServedText> text_;
  size_t sent_ = 0;  // of the head and the content together
  size_t discarded_ = 0;
};

PageServer::PageServer(uint16_t port) : listener_(listen_at("127.0.0.1", port)) {}
PageServer::~PageServer() = default;

uint16_t PageServer::port() const { return port_of(listener_); }

void PageServer::set(const std::string& path, ServedText text) {
  texts_[path] = std::make_shared<const ServedText>(std::move(text));
}

void PageServer::accept_all() {
  while (auto socket = accept_from(listener_)) {
    if (visitors_.size() == kVisitorsMost) visitors_.pop_front();
    visitors_.emplace_back(std::move(*socket));
  }
}

void PageServer::answer(Visitor& visitor) {
  const Asked asked =
      visitor.is_too_long() ? Asked{"431 Request Header Fields Too Large", ""} : parse(visitor.request());
  const auto found = texts_.find(asked.path);
  if (asked.refusal.empty() && found != texts_.end()) {
    visitor.answer(head_of("200 OK", found->second->type, found->second->content.size()), found->second);
    return;
  }
  const std::string_view status = asked.refusal.empty() ? "404 Not Found" : asked.refusal;
  const auto text = std::make_shared<const ServedText>(
      ServedText{.type = "text/plain; charset=utf-8", .content = fmt::format("{}\n", status)});
  visitor.answer(head_of(status, text->type, text->content.size()), text);
}

void PageServer::serve(milliseconds time) {
  const auto end = steady_clock::now() + time;
  for (auto now = steady_clock::now(); now < end; now = steady_clock::now()) {
    std::vector<pollfd> waits = {{listener_.descriptor(), POLLIN, 0}};
    auto next = end;
    for (const auto& visitor : visitors_) {
      waits.push_back({visitor.descriptor(), visitor.events(), 0});
      next = std::min(next, visitor.late());
    }
    const auto limit = std::max(0ms, std::chrono::ceil<milliseconds>(next - now));
    if (poll(waits.data(), waits.size(), static_cast<int>(limit.count())) < 0) return;
    size_t at = 1;
    for (auto& visitor : visitors_) {
      const short events = waits[at++].revents;
      if (events == 0) continue;
      if (visitor.events() == POLLOUT) {
        visitor.write();
      } else if (visitor.read()) {
        answer(visitor);
      }
    }
    std::erase_if(visitors_, [](const Visitor& visitor) { return visitor.is_over(); });
    if (waits.front().revents != 0) accept_all();
  }
}

}  // namespace strait::cli
