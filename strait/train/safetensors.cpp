#include "strait/train/safetensors.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "strait/base/bytes.h"
#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/train/safetensors_header.h"

namespace strait {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kHeaderAlignment = 8;

/// A file open for reading, whose size was taken once.
class InputFile {
 public:
  explicit InputFile(const std::filesystem::path& path)
      : name_(path.string()), descriptor_(::open(name_.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw InputError("{}: cannot be opened: {}", name_, std::strerror(errno));
    struct stat status {};
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      throw InputError("{}: is not a regular file", name_);
    }
    size_ = static_cast<uint64_t>(status.st_size);
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }

  void read(std::span<std::byte> out) {
    while (!out.empty()) {
      const ssize_t got = ::read(descriptor_, out.data(), out.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw InputError("{}: cannot be read at offset {}: {}", name_, at_, std::strerror(errno));
      if (got == 0) throw InputError("{}: ends at offset {}, expected {} bytes", name_, at_, size_);
      at_ += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
  }

 private:
  std::string name_;
  int descriptor_;
  uint64_t size_ = 0;
  uint64_t at_ = 0;
};

std::shared_ptr<Buffer> make_buffer(uint64_t size) {
  auto buffer = std::make_shared<Buffer>(size);
  buffer->resize(size);
  return buffer;
}

void check_booleans(std::span<const std::byte> bytes, const TensorEntry& entry, std::string_view file) {
  const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) {
    throw InputError("{}: tensor {} of BOOL has the value {} at data offset {}, expected 0 or 1", file,
                     in_quotes(entry.name), static_cast<int>(*bad),
                     entry.begin + static_cast<uint64_t>(bad - bytes.begin()));
  }
}

/// A tensor over its part of the data, which it keeps alive; a copy where that part is not aligned.
at::Tensor make_tensor(const TensorEntry& entry, const std::shared_ptr<Buffer>& data, std::string_view file) {
  const auto bytes = data->bytes().subspan(entry.begin, entry.end - entry.begin);
  if (entry.type == at::kBool) check_booleans(bytes, entry, file);
  if (!bytes.empty() && entry.begin % c10::elementSize(entry.type) == 0) {
    return at::from_blob(
        bytes.data(), entry.shape, [data](void*) {}, at::TensorOptions(entry.type));
  }
  auto tensor = at::empty(entry.shape, at::TensorOptions(entry.type));
  if (!bytes.empty()) std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

TensorFile make_file(SafetensorsHeader header, const std::shared_ptr<Buffer>& data, std::string_view file) {
  TensorFile result;
  result.metadata = std::move(header.metadata);
  result.tensors.reserve(header.entries.size());
  for (auto& entry : header.entries) {
    auto tensor = make_tensor(entry, data, file);
    result.tensors.emplace_back(std::move(entry.name), std::move(tensor));
  }
  return result;
}

/// The tensor as it goes into the file: dense, on the CPU, without lazy negation.
at::Tensor plain(const std::string& name, const at::Tensor& tensor, const std::string& file) {
  if (!tensor.defined()) throw Error("{}: tensor {} cannot be written: it has no value", file, in_quotes(name));
  if (safetensors_type_name(tensor.scalar_type()) == nullptr || tensor.layout() != at::kStrided) {
    throw Error("{}: tensor {} cannot be written: safetensors has no type for {}", file, in_quotes(name),
                tensor.toString());
  }
  return tensor.detach().cpu().resolve_neg().contiguous();
}

std::string make_header(const TensorFile& file, const std::string& path) {
  std::set<std::string> names = {"__metadata__"};
  std::string text = "{";
  if (!file.metadata.empty()) text += "\"__metadata__\":" + Json(file.metadata).dump();
  uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (!names.insert(name).second) {
      throw Error("{}: tensor {} cannot be written: the name is taken", path, in_quotes(name));
    }
    const uint64_t end = offset + tensor.nbytes();
    const Json entry = {{"dtype", safetensors_type_name(tensor.scalar_type())},
                        {"shape", tensor.sizes().vec()},
                        {"data_offsets", {offset, end}}};
    text += fmt::format("{}{}:{}", text.size() > 1 ? "," : "", Json(name).dump(), entry.dump());
    offset = end;
  }
  text += '}';
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

}  // namespace

const at::Tensor* TensorFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, [](const auto& entry) { return entry.first; });
  return found == tensors.end() ? nullptr : &found->second;
}

TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  const uint64_t length = safetensors_header_length(bytes, bytes.size(), name);
  const auto data = bytes.subspan(kSafetensorsPrefix + length);
  auto header = parse_safetensors_header(bytes.subspan(kSafetensorsPrefix, length), data.size(), name);
  const auto buffer = make_buffer(data.size());
  std::ranges::copy(data, buffer->data());
  return make_file(std::move(header), buffer, name);
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  InputFile in(path);
  std::array<std::byte, kSafetensorsPrefix> prefix{};
  if (in.size() >= prefix.size()) in.read(prefix);
  const uint64_t length = safetensors_header_length(prefix, in.size(), in.name());
  std::vector<std::byte> json(length);
  in.read(json);
  const uint64_t data_bytes = in.size() - kSafetensorsPrefix - length;
  auto header = parse_safetensors_header(json, data_bytes, in.name());
  const auto buffer = make_buffer(data_bytes);
  in.read(buffer->bytes());
  return make_file(std::move(header), buffer, in.name());
}

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  TensorFile plain_file{{}, file.metadata};
  for (const auto& [name, tensor] : file.tensors) {
    plain_file.tensors.emplace_back(name, plain(name, tensor, path.string()));
  }
  std::string header;
  try {
    header = make_header(plain_file, path.string());
  } catch (const nlohmann::json::exception&) {
    throw Error("{}: cannot be written: a name or a metadata text is not UTF-8", path.string());
  }
  if (header.size() > kSafetensorsHeaderMost) {
    throw Error("{}: cannot be written: its header would have {} bytes, at most {} are allowed", path.string(),
                header.size(), kSafetensorsHeaderMost);
  }
  const uint64_t length = header.size();
  std::vector<std::span<const std::byte>> parts = {std::as_bytes(std::span(&length, 1)),
                                                   std::as_bytes(std::span(header))};
  for (const auto& [name, tensor] : plain_file.tensors) {
    if (tensor.nbytes() > 0) {
      parts.emplace_back(static_cast<const std::byte*>(tensor.data_ptr()), tensor.nbytes());
    }
  }
  replace_file(path, parts);
}

}  // namespace strait
