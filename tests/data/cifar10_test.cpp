#include "strait/data/cifar10.h"

#include "strait/base/error.h"
#include "strait/data/dataset.h"
#include "tests/data/cifar10_folder.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace strait {
namespace {

using test::message_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

DataOptions options(const std::filesystem::path& root, int64_t train, int64_t test) {
  DataOptions result;
  result.root = root.string();
  result.train_limit = train;
  result.test_limit = test;
  return result;
}

void expect_record(const Dataset& data, int64_t id, int64_t file, int64_t record) {
  const auto& images = dynamic_cast<const ImageDataset&>(data).records();
  EXPECT_EQ(images.labels[static_cast<size_t>(id)], test::cifar_label(file, record)) << id;
  for (const int64_t pixel : {0, 1, 1024, 3071}) {
    EXPECT_EQ(images.pixels[static_cast<size_t>(id * kImageBytes + pixel)],
              test::cifar_byte(file, record, pixel))
        << id << " " << pixel;
  }
}

TEST(Cifar10, ReadsAllFilesInOrder) {
  const test::TempDir root;
  test::write_cifar_folder(root.path());
  const DataSplits data = load_data(options(root.path(), 0, 0));
  ASSERT_EQ(data.train->size(), 50000);
  ASSERT_EQ(data.test->size(), 10000);
  for (int64_t file = 1; file <= 5; ++file) {
    for (const int64_t record : {0, 1, 9999})
      expect_record(*data.train, (file - 1) * 10000 + record, file, record);
  }
  for (const int64_t record : {0, 1, 9999}) expect_record(*data.test, record, 6, record);
}

TEST(Cifar10, OpensOnlyTheFilesThatTheLimitReaches) {
  const test::TempDir root;
  const auto folder = root / "cifar-10-batches-bin";
  test::write_cifar_file(folder / "data_batch_1.bin", 1);
  test::write_cifar_file(folder / "test_batch.bin", 6);
  const DataSplits data = load_cifar10(options(root.path(), 10000, 2));
  EXPECT_EQ(data.train->size(), 10000);
  EXPECT_EQ(data.test->size(), 2);
  const auto message = message_of<InputError>([&] { load_cifar10(options(root.path(), 10001, 2)); });
  EXPECT_THAT(message, AllOf(HasSubstr("data_batch_2.bin: no such file"), HasSubstr("STRAIT_DATA")));
  test::write_cifar_file(folder / "data_batch_2.bin", 2);
  const DataSplits more = load_cifar10(options(root.path(), 10001, 2));
  ASSERT_EQ(more.train->size(), 10001);
  expect_record(*more.train, 10000, 2, 0);
}

TEST(Cifar10, AMissingRootSaysWhatToSet) {
  EXPECT_THAT(message_of<InputError>([] { load_cifar10(options("", 0, 0)); }),
              AllOf(HasSubstr("data.root is not set"), HasSubstr("STRAIT_DATA"),
                    HasSubstr("cifar-10-batches-bin/data_batch_1.bin")));
  EXPECT_THAT(message_of<InputError>([] { load_cifar10(options("/no/such/folder", 0, 0)); }),
              HasSubstr("/no/such/folder/cifar-10-batches-bin/data_batch_1.bin: no such file; data.root"));
}

TEST(Cifar10, LimitsAreChecked) {
  const auto train = [](int64_t n) {
    return message_of<InputError>([n] { load_cifar10(options("x", n, 0)); });
  };
  EXPECT_EQ(train(50001), "data.train_limit is 50001, expected 0 (all) to 50000");
  EXPECT_EQ(train(-1), "data.train_limit is -1, expected 0 (all) to 50000");
  EXPECT_EQ(message_of<InputError>([] { load_cifar10(options("x", 0, 10001)); }),
            "data.test_limit is 10001, expected 0 (all) to 10000");
}

TEST(Cifar10, AWrongSizeNamesTheFileAndBothSizes) {
  const test::TempDir root;
  const auto path = root / "data_batch_1.bin";
  for (const int64_t size : {0, 1, 30729999, 30730001}) {
    test::write_cifar_file(path, 1);
    std::filesystem::resize_file(path, static_cast<uintmax_t>(size));
    ImageRecords images;
    EXPECT_EQ(
        message_of<InputError>([&] { append_cifar10_file(path, 1, images); }),
        fmt::format("{}: has {} bytes, expected 30730000 (10000 records of 3073 bytes)", path.string(), size));
  }
}

TEST(Cifar10, AWrongLabelNamesRecordAndOffset) {
  const test::TempDir root;
  const auto path = root / "data_batch_1.bin";
  for (const auto& [record, label] : {std::pair{0, 10}, std::pair{1234, 255}, std::pair{9999, 11}}) {
    test::write_cifar_file(path, 1);
    test::set_byte(path, record * kCifarRecordBytes, static_cast<uint8_t>(label));
    ImageRecords images;
    EXPECT_EQ(message_of<InputError>([&] { append_cifar10_file(path, 10000, images); }),
              fmt::format("{}: record {} at offset {} has label {}, expected 0 to 9", path.string(), record,
                          record * 3073, label));
  }
}

TEST(Cifar10, AnUnreadRecordIsNotJudged) {
  const test::TempDir root;
  const auto path = root / "data_batch_1.bin";
  test::write_cifar_file(path, 1);
  test::set_byte(path, 5 * kCifarRecordBytes, 77);
  ImageRecords images;
  append_cifar10_file(path, 5, images);
  EXPECT_EQ(images.labels.size(), 5U);
}

TEST(Cifar10, AFolderInPlaceOfAFileIsAnInputError) {
  const test::TempDir root;
  std::filesystem::create_directories(root / "data_batch_1.bin");
  ImageRecords images;
  EXPECT_THAT(message_of<InputError>([&] { append_cifar10_file(root / "data_batch_1.bin", 1, images); }),
              HasSubstr("data_batch_1.bin: expected a file, found a folder"));
}

TEST(Cifar10, BytesThatEndInsideARecordAreRefused) {
  for (const size_t size : {size_t{1}, size_t{3072}, size_t{3074}}) {
    const std::vector<std::byte> bytes(size);
    ImageRecords images;
    EXPECT_EQ(message_of<InputError>([&] { append_cifar10_records(bytes, "f", 3, images); }),
              fmt::format("f: ends at offset {} inside record {}, which has 3073 bytes", 3 * 3073 + size,
                          3 + size / 3073));
  }
}

}  // namespace
}  // namespace strait
