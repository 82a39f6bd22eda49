#include "strait/formats/tensorboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <limits>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include "strait/base/error.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <class T>
T read_raw(const std::string& bytes, size_t offset) {
  T value;
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("file ends inside a record");
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// The sum that the TFRecord format asks for, worked out bit by bit.
uint32_t expected_sum(const std::string& bytes) {
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) {
    crc ^= static_cast<uint8_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? (crc >> 1) ^ 0x82f63b78 : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

std::vector<std::string> records_of(const std::string& file) {
  std::vector<std::string> records;
  for (size_t at = 0; at < file.size();) {
    const auto size = read_raw<uint64_t>(file, at);
    EXPECT_EQ(read_raw<uint32_t>(file, at + 8), expected_sum(file.substr(at, 8)));
    records.push_back(file.substr(at + 12, size));
    EXPECT_EQ(read_raw<uint32_t>(file, at + 12 + size), expected_sum(records.back()));
    at += 12 + size + 4;
  }
  return records;
}

/// The Event as Google's protobuf compiler prints it, without its wall_time, which has to be about now.
std::string decode(const test::TempDir& folder, const std::string& record) {
  const auto file = folder / "record";
  test::write_file(file, record);
  const std::string command =
      "protoc --proto_path=tests/tensorboard --decode=Event event.proto < '" + file.string() + "'";
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
  std::string text;
  std::array<char, 256> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) text += part.data();
  EXPECT_EQ(pclose(pipe), 0) << command;
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, std::regex("^wall_time: (.*)\n"))) << text;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_NEAR(std::stod(match[1]), std::chrono::duration<double>(now).count(), 60);
  return match.suffix();
}

TEST(Tensorboard, Crc32cOfKnownVectors) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Tensorboard, AnotherProgramReadsTheScalars) {
  const test::TempDir folder;
  TensorboardWriter writer(folder / "logs");
  writer.add_scalar("train/loss", 0, 2.5F);
  writer.add_scalar("train/loss", 300, -0.125F);
  writer.add_scalar("bytes/boundary 0", int64_t{1} << 40, 1e9F);
  writer.add_scalar("diverged", 7, std::numeric_limits<float>::quiet_NaN());
  writer.flush();
  std::vector<std::string> events;
  for (const auto& record : records_of(test::read_file(writer.path()))) {
    events.push_back(decode(folder, record));
  }
  const auto scalar = [](const std::string& tag, const std::string& value) {
    return "summary {\n  value {\n    tag: \"" + tag + "\"\n    simple_value: " + value + "\n  }\n}\n";
  };
  EXPECT_THAT(events, ElementsAre("file_version: \"brain.Event:2\"\n", scalar("train/loss", "2.5"),
                                  "step: 300\n" + scalar("train/loss", "-0.125"),
                                  "step: 1099511627776\n" + scalar("bytes/boundary 0", "1e+09"),
                                  "step: 7\n" + scalar("diverged", "nan")));
}

TEST(Tensorboard, FileIsNamedForTensorboardAndNeverReused) {
  const test::TempDir folder;
  const TensorboardWriter first(folder.path());
  const TensorboardWriter second(folder.path());
  EXPECT_THAT(first.path().filename().string(), StartsWith("events.out.tfevents."));
  EXPECT_NE(first.path(), second.path());
  EXPECT_EQ(records_of(test::read_file(second.path())).size(), 1U);
}

TEST(Tensorboard, DestructionWritesWhatIsLeft) {
  const test::TempDir folder;
  std::filesystem::path path;
  {
    TensorboardWriter writer(folder.path());
    for (int step = 0; step < 1000; ++step) writer.add_scalar("loss", step, 1);
    path = writer.path();
  }
  EXPECT_EQ(records_of(test::read_file(path)).size(), 1001U);
}

TEST(Tensorboard, ErrorsNameTheFile) {
  const test::TempDir folder;
  test::write_file(folder / "file", "");
  try {
    const TensorboardWriter writer(folder / "file");
    FAIL() << "a file was taken for a folder";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr((folder / "file").string()));
  }
}

TEST(Tensorboard, NegativeStepIsRefused) {
  const test::TempDir folder;
  TensorboardWriter writer(folder.path());
  EXPECT_THROW(writer.add_scalar("loss", -1, 0), InternalError);
}

}  // namespace
}  // namespace strait
