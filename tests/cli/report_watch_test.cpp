// strait report --watch, as browsers and others speak to it.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "strait/base/error.h"
#include "strait/transport/port.h"
#include "strait/transport/socket.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr auto kPatience = 60s;  // of a loaded machine

class Watch : public testing::Test {
 protected:
  Watch() : port_(free_port()) { write("running", 1); }

  void write(const std::string& status, int epochs) {
    std::string lines;
    for (int epoch = 0; epoch < epochs; ++epoch) lines += test::epoch_line(epoch, 2.5, 10 + epoch, 20 + epoch);
    test::write_run(dir_ / "run", "the-run", 0, status, lines);
  }

  std::vector<std::string> words() const {
    return {"report", dir_ / "run", "--watch", "--port", std::to_string(port_)};
  }

  /// Starts the program and waits until it answers.
  void start() {
    program_ = std::make_unique<test::Process>(STRAIT_PROGRAM, words());
    ASSERT_THAT(get("/"), StartsWith("HTTP/1.1 200 OK\r\n"));
  }

  Socket connect() {
    auto socket = connect_to("127.0.0.1", port_, std::chrono::steady_clock::now() + kPatience);
    for (const auto end = std::chrono::steady_clock::now() + kPatience;
         !socket && std::chrono::steady_clock::now() < end;) {
      std::this_thread::sleep_for(20ms);
      socket = connect_to("127.0.0.1", port_, std::chrono::steady_clock::now() + kPatience);
    }
    if (!socket) throw Error("nobody listens");
    return std::move(*socket);
  }

  static void say(const Socket& socket, std::string_view bytes) {
    while (!bytes.empty()) {
      pollfd wait{socket.descriptor(), POLLOUT, 0};
      poll(&wait, 1, 1000);
      const ssize_t sent = send(socket.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;  // it has closed, which what it said tells more of
      if (sent > 0) bytes.remove_prefix(static_cast<size_t>(sent));
    }
  }

  /// All that comes until the other side closes.
  static std::string hear(const Socket& socket) {
    std::string all;
    std::array<char, 65536> space;
    while (true) {
      pollfd wait{socket.descriptor(), POLLIN, 0};
      if (poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(kPatience).count())) <= 0)
        return all + "(late)";
      const ssize_t got = recv(socket.descriptor(), space.data(), space.size(), 0);
      if (got > 0) all.append(space.data(), static_cast<size_t>(got));
      if (got == 0 || (got < 0 && errno != EAGAIN)) return all;
    }
  }

  std::string ask(std::string_view request) {
    const Socket socket = connect();
    say(socket, request);
    return hear(socket);
  }

  std::string get(const std::string& path, const std::string& host = "127.0.0.1") {
    return ask("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  }

  nlohmann::json state() {
    const std::string answer = get("/state.json");
    return nlohmann::json::parse(answer.substr(answer.find("\r\n\r\n")));
  }

  /// Waits until `is_so` says yes of the state.
  template <class IsSo>
  nlohmann::json wait_for(IsSo is_so) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    nlohmann::json found = state();
    while (!is_so(found) && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(50ms);
      found = state();
    }
    EXPECT_TRUE(is_so(found)) << found;
    return found;
  }

  test::TempDir dir_;
  uint16_t port_;
  std::unique_ptr<test::Process> program_;
};

TEST_F(Watch, FollowsARunThatGrows) {
  start();
  const std::string page = get("/");
  EXPECT_THAT(page, HasSubstr("\r\nContent-Type: text/html; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("; img-src data:; connect-src 'self'; base-uri"));
  EXPECT_THAT(page, HasSubstr("\"epochs_done\":1,"));
  const auto first = state();
  EXPECT_THAT(page, HasSubstr("<body data-version=\"" + first["version"].get<std::string>() + "\">"));
  EXPECT_EQ(first["error"], "");
  write("done", 3);
  wait_for([&](const auto& now) {
    return now["version"] != first["version"] && get("/").find("\"epochs_done\":3,") != std::string::npos;
  });
}

TEST_F(Watch, KeepsThePageWhileTheRunsCannotBeRead) {
  start();
  const auto first = state();
  test::write_file(dir_ / "run/status.json", "{");
  const auto broken = wait_for([](const auto& now) { return now["error"] != ""; });
  EXPECT_THAT(broken["error"], HasSubstr("status.json: is not JSON"));
  EXPECT_EQ(broken["version"], first["version"]);
  EXPECT_THAT(get("/"), HasSubstr("\"epochs_done\":1,"));
  write("running", 2);
  wait_for([&](const auto& now) { return now["error"] == "" && now["version"] != first["version"]; });
}

TEST_F(Watch, AnswersNothingButItsPaths) {
  start();
  for (const std::string path : {"/report.html", "/run/status.json", "/../../etc/passwd", "//", "/?", "*",
                                 "http://127.0.0.1/", "/state.json/"}) {
    EXPECT_THAT(get(path), testing::AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), HasSubstr("\r\n\r\n404")))
        << path;
  }
  EXPECT_THAT(ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
              testing::AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("\r\nAllow: GET\r\n")));
}

TEST_F(Watch, AnswersNoOtherName) {
  start();
  const std::string port = std::to_string(port_);
  for (const auto& host : std::vector<std::string>{"127.0.0.1", "127.0.0.1:" + port, "localhost:" + port,
                                                   "LocalHost:9", " localhost "}) {
    EXPECT_THAT(get("/state.json", host), StartsWith("HTTP/1.1 200 ")) << host;
  }
  for (const auto& host :
       std::vector<std::string>{"example.com", "127.0.0.1.example.com", "localhost.example.com:" + port, "",
                                "[::1]", "127.0.0.1:80@example.com", "example.com:127.0.0.1"}) {
    EXPECT_THAT(get("/state.json", host), testing::AllOf(StartsWith("HTTP/1.1 403 "), HasSubstr("\r\n\r\n403")))
        << host;
  }
  EXPECT_THAT(ask("GET / HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 ")) << "names no host";
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.com\r\n\r\n"),
              StartsWith("HTTP/1.1 400 "));
}

TEST_F(Watch, RefusesGarbage) {
  start();
  for (const std::string request :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2\r\nHost: localhost\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\x16\x03\x01\xff\xff garbage\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n"}) {
    EXPECT_THAT(ask(request), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << request;
  }
  EXPECT_THAT(ask("GET /" + std::string(1 << 20, 'a')), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(9000, 'a') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(ask(std::string(100, '\0') + "\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Watch, ServesOthersWhileSomeAreSlow) {
  start();
  std::vector<Socket> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect());
  const Socket slow = connect();
  say(slow, "GET /state.js");
  const Socket other = connect();
  say(other, "GET / HTTP/1.1\r\nHost: local");
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(hear(silent.front()), "") << "of more than 64 the oldest has gone";
  say(other, "host\r\n\r\n");
  say(slow, "on HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(hear(slow), HasSubstr("{\"error\":\"\",\"version\":"));
  EXPECT_THAT(hear(other), testing::EndsWith("</html>\n"));
}

TEST_F(Watch, CutsOffWhoeverSendsWithoutEnd) {
  start();
  const Socket flood = connect();
  say(flood, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(hear(flood), testing::EndsWith("</html>\n"));
  constexpr size_t kMost = size_t{1} << 30;
  constexpr size_t kBuffers = size_t{64} << 20;  // more than the system keeps of what nobody has read
  const std::string bytes(1 << 16, 'a');
  size_t sent = 0;
  while (sent < kMost) {
    pollfd wait{flood.descriptor(), POLLOUT, 0};
    poll(&wait, 1, 1000);
    const ssize_t taken = send(flood.descriptor(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (taken < 0 && errno != EAGAIN) break;
    if (taken > 0) sent += static_cast<size_t>(taken);
  }
  EXPECT_LT(sent, kBuffers);
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(Watch, ASignalEndsIt) {
  start();
  const Socket waiting = connect();
  program_->send(SIGINT);
  const auto ended = program_->wait(kPatience);
  EXPECT_EQ(ended.status, 130) << ended.err;
  EXPECT_EQ(ended.out, "http://127.0.0.1:" + std::to_string(port_) + "/ (Ctrl-C ends it)\n");
  EXPECT_EQ(ended.err, "");
  EXPECT_FALSE(std::filesystem::exists("report.html"));
}

TEST_F(Watch, APortThatIsTakenIsNamed) {
  const Socket taken = listen_at("127.0.0.1", port_);
  const auto ended = test::run_process(STRAIT_PROGRAM, words());
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err,
              StartsWith("strait: --port " + std::to_string(port_) + ": cannot listen at 127.0.0.1: "));
}

}  // namespace
}  // namespace strait
