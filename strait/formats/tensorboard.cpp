#include "strait/formats/tensorboard.h"

#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/host.h"

namespace strait {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReflectedPolynomial = 0x82f63b78;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < table.size(); ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflectedPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kCrcTable = make_crc_table();

/// TFRecord stores sums in this form, because a sum of bytes that contain their sum is weak.
uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xa282ead8U; }

// Protocol buffers: a field is (number << 3 | wire type) and its value.
enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

template <class T>
void put_raw(std::string& out, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  out.append(bytes, sizeof(T));
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, Wire wire) {
  put_varint(out, (field << 3) | static_cast<unsigned>(wire));
}

void put_bytes(std::string& out, unsigned field, std::string_view value) {
  put_key(out, field, Wire::bytes);
  put_varint(out, value.size());
  out += value;
}

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// An Event up to its content: wall_time = 1, step = 2.
std::string begin_event(int64_t step) {
  std::string event;
  put_key(event, 1, Wire::fixed64);
  put_raw(event, wall_time());
  if (step != 0) {
    put_key(event, 2, Wire::varint);
    put_varint(event, static_cast<uint64_t>(step));
  }
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kCrcTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

TensorboardWriter::TensorboardWriter(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail_to_write(error.value(),
                  fmt::format("{}: cannot make the folder: {}", folder.string(), error.message()));
  }
  const auto stem = fmt::format("events.out.tfevents.{}.{}", static_cast<int64_t>(wall_time()), host_name());
  for (int attempt = 0; file_ == nullptr; ++attempt) {
    path_ = folder / (attempt == 0 ? stem : fmt::format("{}.{}", stem, attempt));
    file_.reset(std::fopen(path_.c_str(), "abx"));
    if (file_ == nullptr && errno != EEXIST) fail("cannot be made");
  }
  std::string event = begin_event(0);
  put_bytes(event, 3, "brain.Event:2");  // file_version = 3
  append(event);
  flush();
}

void TensorboardWriter::add_scalar(std::string_view tag, int64_t step, float value) {
  STRAIT_CHECK(step >= 0, "step {} of scalar {}", step, tag);
  std::string scalar;  // Summary.Value: tag = 1, simple_value = 2
  put_bytes(scalar, 1, tag);
  put_key(scalar, 2, Wire::fixed32);
  put_raw(scalar, value);
  std::string summary;  // Summary: value = 1
  put_bytes(summary, 1, scalar);
  std::string event = begin_event(step);
  put_bytes(event, 5, summary);  // summary = 5
  append(event);
}

void TensorboardWriter::flush() {
  if (std::fflush(file_.get()) != 0) fail("cannot be written");
}

void TensorboardWriter::append(std::string_view event) {
  std::string record;
  put_raw(record, static_cast<uint64_t>(event.size()));
  put_raw(record, masked_crc(record));
  record += event;
  put_raw(record, masked_crc(event));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size()) fail("cannot be written");
}

void TensorboardWriter::fail(const char* what) const {
  const int reason = errno;
  fail_to_write(reason, fmt::format("{}: {}: {}", path_.string(), what, std::strerror(reason)));
}

}  // namespace strait
