#include "strait/download/download.h"

#include "strait/base/error.h"
#include "tests/download/archive_maker.h"
#include "tests/download/one_answer_server.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

Checksum sum_of(const std::string& content, DigestKind kind = DigestKind::sha256) {
  Hasher hasher(kind);
  hasher.update(std::as_bytes(std::span(content)));
  return hasher.finish();
}

DownloadOptions short_waits() {
  DownloadOptions options;
  options.connect_seconds = 5;
  options.silence_seconds = 1;
  return options;
}

TEST(Digest, KnownSums) {
  EXPECT_EQ(sum_of("abc", DigestKind::md5).hex, "900150983cd24fb0d6963f7d28e17f72");
  EXPECT_EQ(sum_of("abc", DigestKind::sha1).hex, "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(sum_of("abc").hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const test::TempDir dir;
  test::write_file(dir / "f", "abc");
  EXPECT_EQ(file_checksum(dir / "f", DigestKind::sha256), sum_of("abc"));
  EXPECT_THAT(message_of<InputError>([&] { file_checksum(dir / "none", DigestKind::md5); }),
              HasSubstr("none: cannot be opened"));
}

TEST(Download, FetchesAndReportsProgress) {
  const test::TempDir dir;
  const std::string content(300'000, 'x');
  test::write_file(dir / "source", content);
  uint64_t last = 0;
  DownloadOptions options;
  options.progress = [&](uint64_t received, uint64_t) {
    last = received;
    return true;
  };
  download("file://" + (dir / "source").string(), sum_of(content), dir / "target", options);
  EXPECT_EQ(test::read_file(dir / "target"), content);
  EXPECT_EQ(last, content.size());
}

TEST(Download, FetchesOverHttp) {
  const test::TempDir dir;
  const test::OneAnswerServer server("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello");
  download(server.url("f"), sum_of("hello"), dir / "target", short_waits());
  EXPECT_EQ(test::read_file(dir / "target"), "hello");
}

TEST(Download, FailuresNameTheAddressAndLeaveNothing) {
  const test::TempDir dir;
  test::write_file(dir / "source", "hello");
  const std::string url = "file://" + (dir / "source").string();
  const auto failure = [&](const std::string& address, const Checksum& sum, const DownloadOptions& options) {
    const auto message = message_of<Error>([&] { download(address, sum, dir / "target", options); });
    EXPECT_THAT(message, HasSubstr(address + ": "));
    EXPECT_FALSE(std::filesystem::exists(dir / "target"));
    return message;
  };
  EXPECT_EQ(failure(url, sum_of("hullo"), {}),
            fmt::format("{}: has the sha256 sum {}, expected {} (5 bytes received)", url, sum_of("hello").hex,
                        sum_of("hullo").hex));
  EXPECT_THAT(failure(url + "2", sum_of(""), {}), HasSubstr("cannot be fetched"));
  EXPECT_THAT(failure("gopher://127.0.0.1/x", sum_of(""), {}), HasSubstr("cannot be fetched"));
  DownloadOptions small;
  small.bytes_most = 4;
  EXPECT_THAT(failure(url, sum_of("hello"), small), HasSubstr("has more than 4 bytes"));
  DownloadOptions stopping;
  stopping.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_THAT(failure(url, sum_of("hello"), stopping), HasSubstr("was stopped"));
  stopping.progress = [](uint64_t, uint64_t) -> bool { throw Error("no terminal"); };
  EXPECT_THAT(failure(url, sum_of("hello"), stopping), HasSubstr("was stopped: no terminal"));
}

TEST(Download, HttpFailuresAreErrors) {
  const test::TempDir dir;
  const auto failure = [&](const std::string& answer) {
    const test::OneAnswerServer server(answer);
    const auto fetch = [&] { download(server.url("f"), sum_of("hello"), dir / "target", short_waits()); };
    const auto message = message_of<Error>(fetch);
    EXPECT_FALSE(std::filesystem::exists(dir / "target"));
    return message;
  };
  EXPECT_THAT(failure("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), HasSubstr("404"));
  EXPECT_THAT(failure("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), HasSubstr("cannot be fetched"));
  EXPECT_THAT(failure("HTTP/1.1 302 Found\r\nLocation: file:///etc/hostname\r\nContent-Length: 0\r\n\r\n"),
              HasSubstr("cannot be fetched"));
}

TEST(Download, ASilentServerEndsTheWait) {
  const test::TempDir dir;
  const test::OneAnswerServer server("");
  EXPECT_THAT(message_of<Error>([&] { download(server.url("f"), sum_of(""), dir / "target", short_waits()); }),
              HasSubstr("cannot be fetched"));
}

TEST(Download, AFileInTheWayIsKept) {
  const test::TempDir dir;
  test::write_file(dir / "source", "hello");
  test::write_file(dir / "target", "old");
  const auto fetch = [&] {
    download("file://" + (dir / "source").string(), sum_of("hello"), dir / "target", {});
  };
  EXPECT_THAT(message_of<Error>(fetch), HasSubstr("target: cannot be created: File exists"));
  EXPECT_EQ(test::read_file(dir / "target"), "old");
}

TEST(Archive, TakesTheMembersOnly) {
  const test::TempDir dir;
  test::make_tar_gz(dir / "a.tar.gz", {{"top/one", "1"}, {"./top/two", "22"}, {"top/readme", "x"}});
  extract_members(dir / "a.tar.gz", {{"top/two", "x/2", 2}, {"top/one", "1", 1}}, dir / "out");
  EXPECT_EQ(test::read_file(dir / "out/1"), "1");
  EXPECT_EQ(test::read_file(dir / "out/x/2"), "22");
  EXPECT_FALSE(std::filesystem::exists(dir / "out/top"));
}

struct BadArchive {
  const char* what;
  std::vector<test::TarMember> members;
  const char* message;
};

TEST(Archive, RefusesWhatItWasNotPromised) {
  const std::vector<BadArchive> cases = {
      {"missing", {{"top/two", "22"}}, "has no member top/one"},
      {"short", {{"top/one", "1"}}, "member top/one has 1 bytes, expected 3"},
      {"long", {{"top/one", std::string(1 << 20, 'x')}}, "member top/one has more bytes, expected 3"},
      {"twice", {{"top/one", "123"}, {"top/one", "123"}}, "has the member top/one twice"},
      {"link", {{"top/one", "", "/etc/passwd"}}, "member top/one is not a plain file"},
      {"parent", {{"top/one", "123"}, {"../evil", "x"}}, "member \"../evil\" would leave the folder"},
      {"hidden parent", {{"top/../../evil", "x"}}, "member \"top/../../evil\" would leave the folder"},
      {"absolute", {{"/evil", "x"}}, "member \"/evil\" would leave the folder"},
  };
  for (const auto& bad : cases) {
    const test::TempDir dir;
    test::make_tar_gz(dir / "a.tar.gz", bad.members);
    const auto extract = [&] { extract_members(dir / "a.tar.gz", {{"top/one", "one", 3}}, dir / "out"); };
    EXPECT_THAT(message_of<Error>(extract), AllOf(HasSubstr("a.tar.gz: "), HasSubstr(bad.message))) << bad.what;
    EXPECT_FALSE(std::filesystem::exists(dir / "evil")) << bad.what;
  }
}

TEST(Archive, NamesTheFileWhoseFolderCannotBeMade) {
  const test::TempDir dir;
  test::make_tar_gz(dir / "a.tar.gz", {{"top/one", "123"}});
  std::filesystem::create_directories(dir / "out");
  test::write_file(dir / "out/x", "in the way");
  const auto extract = [&] { extract_members(dir / "a.tar.gz", {{"top/one", "x/one", 3}}, dir / "out"); };
  EXPECT_EQ(message_of<Error>(extract), (dir / "out/x/one").string() + ": cannot be written");
}

TEST(Archive, RefusesDamage) {
  const test::TempDir dir;
  std::string noise;
  for (int i = 0; i < 5000; ++i) noise += static_cast<char>(i * 7919 >> 3);
  test::make_tar_gz(dir / "whole.tar.gz", {{"one", noise}});
  const std::string whole = test::read_file(dir / "whole.tar.gz");
  test::write_file(dir / "cut.tar.gz", whole.substr(0, whole.size() / 2));
  test::write_file(dir / "junk.tar.gz", "this is no archive at all");
  for (const char* name : {"cut.tar.gz", "junk.tar.gz", "absent.tar.gz"}) {
    const auto extract = [&] { extract_members(dir / name, {{"one", "one", noise.size()}}, dir / "out"); };
    EXPECT_THAT(message_of<Error>(extract), AllOf(HasSubstr(name), HasSubstr("archive is damaged"))) << name;
  }
}

}  // namespace
}  // namespace strait
