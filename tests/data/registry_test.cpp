#include "strait/data/registry.h"

#include "strait/base/error.h"
#include "tests/data/cifar10_folder.h"
#include "tests/download/archive_maker.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using ::testing::HasSubstr;

Checksum sum_of(const std::string& content) {
  Hasher hasher(DigestKind::sha1);
  hasher.update(std::as_bytes(std::span(content)));
  return hasher.finish();
}

/// A data set of two small text files in an archive, served from the folder `mirror` as file://.
class Get : public ::testing::Test {
 protected:
  Get() {
    fs::create_directories(mirror());
    data_.name = "tiny";
    data_.files = {{"tiny/a", 3, sum_of("aaa"), FileContent::text},
                   {"tiny/b", 2, sum_of("bb"), FileContent::text}};
    serve({{"tiny/a", "aaa"}, {"tiny/b", "bb"}, {"tiny/readme", "?"}});
    options_.base_url = "file://" + mirror().string();
  }

  void serve(const std::vector<test::TarMember>& members) {
    const fs::path path = mirror() / "tiny.tar.gz";
    test::make_tar_gz(path, members);
    data_.downloads = {{"https://unused/", "tiny.tar.gz", file_checksum(path, DigestKind::md5), ""}};
  }

  std::string failure() {
    return message_of<Error>([&] { get_data(data_, root(), options_); });
  }

  /// Everything under root, hidden or not.
  std::vector<std::string> content() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(root())) {
      if (entry.is_regular_file() || entry.path().filename().string().starts_with(".")) {
        names.push_back(fs::relative(entry.path(), root()).string());
      }
    }
    std::ranges::sort(names);
    return names;
  }

  fs::path mirror() const { return dir_ / "mirror"; }
  fs::path root() const { return dir_ / "root"; }

  test::TempDir dir_;
  OfficialData data_;
  GetOptions options_;
};

const std::vector<std::string> kBoth = {"tiny/a", "tiny/b"};

TEST_F(Get, BringsTheFilesOnce) {
  const GetResult first = get_data(data_, root(), options_);
  EXPECT_FALSE(first.present);
  EXPECT_EQ(first.files, (std::vector<fs::path>{root() / "tiny/a", root() / "tiny/b"}));
  EXPECT_EQ(content(), kBoth);
  EXPECT_EQ(test::read_file(root() / "tiny/b"), "bb");
  options_.base_url = "file:///no/such/mirror";
  EXPECT_TRUE(get_data(data_, root(), options_).present);
}

TEST_F(Get, ReplacesAFileThatDiffersAndKeepsItsNeighbours) {
  fs::create_directories(root() / "tiny");
  test::write_file(root() / "tiny/a", "xxx");
  test::write_file(root() / "tiny/mine", "keep");
  get_data(data_, root(), options_);
  EXPECT_EQ(test::read_file(root() / "tiny/a"), "aaa");
  EXPECT_EQ(test::read_file(root() / "tiny/mine"), "keep");
}

TEST_F(Get, FetchesSingleFiles) {
  test::write_file(mirror() / "first", "aaa");
  test::write_file(mirror() / "second", "bb");
  data_.downloads = {{"", "first", sum_of("aaa"), "tiny/a"}, {"", "second", sum_of("bb"), "tiny/b"}};
  get_data(data_, root(), options_);
  EXPECT_EQ(content(), kBoth);
}

TEST_F(Get, AWrongSumOfTheArchiveLeavesNothing) {
  data_.downloads[0].sum.hex = std::string(32, '0');
  EXPECT_THAT(failure(), HasSubstr("has the md5 sum"));
  EXPECT_EQ(content(), std::vector<std::string>{});
}

TEST_F(Get, ATruncatedArchiveLeavesNothing) {
  const fs::path path = mirror() / "tiny.tar.gz";
  fs::resize_file(path, fs::file_size(path) / 2);
  EXPECT_THAT(failure(), HasSubstr("has the md5 sum"));
  data_.downloads[0].sum = file_checksum(path, DigestKind::md5);
  EXPECT_THAT(failure(), HasSubstr("archive is damaged"));
  EXPECT_EQ(content(), std::vector<std::string>{});
}

TEST_F(Get, AWrongSumOfAMemberLeavesTheOldFiles) {
  fs::create_directories(root() / "tiny");
  test::write_file(root() / "tiny/a", "old");
  serve({{"tiny/a", "aaa"}, {"tiny/b", "bx"}});
  EXPECT_EQ(failure(),
            fmt::format("tiny/b: what was fetched is not the official file: sha1 sum {}, expected {}",
                        sum_of("bx").hex, sum_of("bb").hex));
  EXPECT_EQ(content(), std::vector<std::string>{"tiny/a"});
  EXPECT_EQ(test::read_file(root() / "tiny/a"), "old");
}

TEST_F(Get, AMemberThatClimbsOutLeavesNothing) {
  serve({{"tiny/a", "aaa"}, {"tiny/b", "bb"}, {"../../evil", "x"}});
  EXPECT_THAT(failure(), HasSubstr("\"../../evil\" would leave the folder"));
  EXPECT_EQ(content(), std::vector<std::string>{});
  EXPECT_FALSE(fs::exists(dir_ / "evil"));
}

TEST_F(Get, StoppingLeavesNothing) {
  options_.download.progress = [](uint64_t, uint64_t) { return false; };
  EXPECT_THAT(failure(), HasSubstr("was stopped"));
  EXPECT_EQ(content(), std::vector<std::string>{});
}

TEST_F(Get, ARootThatCannotBeMadeIsNamed) {
  test::write_file(dir_ / "file", "");
  const auto get = [&] { get_data(data_, dir_ / "file/root", options_); };
  EXPECT_THAT(message_of<Error>(get), HasSubstr("file/root: cannot be made"));
}

TEST(Registry, NamesAreKnownAndMisspeltOnesAnswered) {
  for (const char* name : {"cifar10", "wikitext2", "gpt2-tokenizer", "gpt2"}) {
    const OfficialData& data = data_info(name);
    EXPECT_EQ(data.name, name);
    EXPECT_FALSE(data.title.empty() || data.source.empty() || data.terms.empty() || data.files.empty()) << name;
    EXPECT_NE(data.downloads.empty(), data.hint.empty()) << name;
  }
  EXPECT_EQ(
      message_of<InputError>([] { data_info("cifar-10"); }),
      "there is no data set \"cifar-10\", expected one of cifar10, wikitext2, gpt2-tokenizer, gpt2 (did you "
      "mean \"cifar10\"?)");
}

TEST(Registry, SumsAreWellFormed) {
  const auto check = [](const Checksum& sum) {
    const size_t lengths[] = {32, 40, 64};
    EXPECT_EQ(sum.hex.size(), lengths[static_cast<size_t>(sum.kind)]);
    EXPECT_EQ(sum.hex.find_first_not_of("0123456789abcdef"), std::string::npos);
  };
  for (const auto& data : official_data()) {
    for (const auto& file : data.files) check(file.sum);
    for (const auto& source : data.downloads) {
      check(source.sum);
      EXPECT_TRUE(source.base.starts_with("https://") && source.base.ends_with("/")) << source.base;
    }
  }
}

TEST(Registry, DataWithoutAnAddressSaysWhereToPutIt) {
  const test::TempDir root;
  EXPECT_THAT(
      message_of<InputError>([&] { get_data(data_info("wikitext2"), root.path(), {}); }),
      AllOf(HasSubstr("wikitext2 cannot be fetched: "), HasSubstr("Salesforce/wikitext (wikitext-2-raw-v1)"),
            HasSubstr("wikitext-2-raw/wiki.train.raw, wiki.valid.raw and wiki.test.raw")));
  EXPECT_TRUE(fs::is_empty(root.path()));
}

TEST(Check, CifarOfAnotherSumDiffersWhileItIsValid) {
  const test::TempDir root;
  test::write_cifar_folder(root.path());
  const CheckReport report = check_data(data_info("cifar10"), root.path());
  ASSERT_EQ(report.lines.size(), 6U);
  const auto path = root / "cifar-10-batches-bin/test_batch.bin";
  EXPECT_EQ(report.first_wrong()->message, report.lines[0].message);
  EXPECT_EQ(report.lines[5].level, CheckLevel::differs);
  EXPECT_EQ(report.lines[5].message, fmt::format("{}: differs from the official file: sha1 sum {}, expected "
                                                 "67eb016db431130d61cd03c7ad570b013799c88c",
                                                 path.string(), file_checksum(path, DigestKind::sha1).hex));
}

TEST(Check, BrokenCifarIsAnError) {
  const test::TempDir root;
  test::write_cifar_folder(root.path());
  const auto folder = root / "cifar-10-batches-bin";
  fs::resize_file(folder / "data_batch_1.bin", 100);
  fs::remove(folder / "data_batch_2.bin");
  test::set_byte(folder / "data_batch_3.bin", 42 * kCifarRecordBytes, 10);
  fs::remove(folder / "data_batch_4.bin");
  fs::create_directory(folder / "data_batch_4.bin");
  const CheckReport report = check_data(data_info("cifar10"), root.path());
  const std::vector<std::string> expected = {"has 100 bytes, expected 30730000", "no such file",
                                             "record 42 at offset 129066 has label 10", "no such file"};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(report.lines[i].level, CheckLevel::error) << i;
    EXPECT_THAT(report.lines[i].message, HasSubstr(expected[i]));
  }
  EXPECT_EQ(report.lines[4].level, CheckLevel::differs);
  EXPECT_EQ(report.first_wrong()->message, report.lines[0].message);
}

TEST(Check, AnErrorCountsBeforeAFileThatDiffers) {
  const test::TempDir root;
  OfficialData data;
  data.files = {{"a", 4, sum_of("abc\n"), FileContent::text}, {"b", 4, sum_of("abc\n"), FileContent::text}};
  test::write_file(root / "a", "abc\n");
  test::write_file(root / "b", "abc\n");
  EXPECT_FALSE(check_data(data, root.path()).first_wrong().has_value());
  test::write_file(root / "a", "other");
  EXPECT_EQ(check_data(data, root.path()).first_wrong()->level, CheckLevel::differs);
  test::write_file(root / "b", "");
  EXPECT_THAT(check_data(data, root.path()).first_wrong()->message, HasSubstr("/b: is empty"));
}

struct TextCase {
  std::string content;
  CheckLevel level;
  const char* message;
};

TEST(Check, TextIsUtf8AndNotEmpty) {
  const std::vector<TextCase> cases = {
      {"abc\n", CheckLevel::ok, "the official file"},
      {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", CheckLevel::differs, "differs from the official file"},
      {"", CheckLevel::error, "is empty"},
      {"ab\xff", CheckLevel::error, "is not UTF-8 at offset 2"},
      {"\xc0\x80", CheckLevel::error, "is not UTF-8 at offset 0"},
      {"a\xed\xa0\x80", CheckLevel::error, "is not UTF-8 at offset 2"},
      {"\xf4\x90\x80\x80", CheckLevel::error, "is not UTF-8 at offset 1"},
      {"abc\xe2\x82", CheckLevel::error, "ends inside a UTF-8 character"},
  };
  OfficialData data;
  data.files = {{"t", 4, sum_of("abc\n"), FileContent::text}};
  for (const auto& text : cases) {
    const test::TempDir root;
    test::write_file(root / "t", text.content);
    const CheckReport report = check_data(data, root.path());
    EXPECT_EQ(report.lines[0].level, text.level) << report.lines[0].message;
    EXPECT_THAT(report.lines[0].message, HasSubstr(text.message));
  }
}

TEST(Check, AnOpaqueFileMustBeTheOfficialOne) {
  const test::TempDir root;
  OfficialData data;
  data.files = {{"t", 4, sum_of("abc\n"), FileContent::opaque}};
  test::write_file(root / "t", "abc\n");
  EXPECT_EQ(check_data(data, root.path()).lines[0].level, CheckLevel::ok);
  test::write_file(root / "t", "abcd");
  const CheckLine line = check_data(data, root.path()).lines[0];
  EXPECT_EQ(line.level, CheckLevel::error);
  EXPECT_THAT(line.message, HasSubstr("expected 4 bytes and " + sum_of("abc\n").hex));
}

}  // namespace
}  // namespace strait
