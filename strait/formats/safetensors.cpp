#include "strait/formats/safetensors.h"

#include <ATen/ops/empty.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <set>
#include <span>

#include "strait/base/error.h"
#include "strait/base/files.h"
#include "strait/base/json.h"
#include "strait/base/text.h"
#include "strait/base/utf8.h"

namespace strait {
namespace {

constexpr size_t kHeaderAlignment = 8;

void check_booleans(std::span<const std::byte> bytes, const TensorEntry& entry, std::string_view file) {
  const auto bad = std::ranges::find_if(bytes, [](std::byte b) { return b > std::byte{1}; });
  if (bad != bytes.end()) {
    throw InputError("{}: tensor {} of BOOL has the value {} at data offset {}, expected 0 or 1", file,
                     in_quotes(entry.name), static_cast<int>(*bad),
                     entry.begin + static_cast<uint64_t>(bad - bytes.begin()));
  }
}

bool is_dense(const at::Tensor& tensor) {
  return tensor.is_cpu() && tensor.layout() == at::kStrided && tensor.is_contiguous() && !tensor.is_neg();
}

bool holds(const at::Tensor& tensor, const TensorEntry& entry) {
  return tensor.defined() && is_dense(tensor) && tensor.scalar_type() == entry.type &&
         tensor.sizes() == at::IntArrayRef(entry.shape);
}

TensorFile read_all(const SafetensorsReader& reader) {
  TensorFile result{{}, reader.header().metadata};
  result.tensors.reserve(reader.header().entries.size());
  for (const auto& entry : reader.header().entries) {
    at::Tensor tensor;
    reader.read(entry, tensor);
    result.tensors.emplace_back(entry.name, std::move(tensor));
  }
  return result;
}

void check_can_be_written(const std::string& name, const at::Tensor& tensor, const std::string& file) {
  if (!tensor.defined()) throw Error("{}: tensor {} cannot be written: it has no value", file, in_quotes(name));
  if (safetensors_type_name(tensor.scalar_type()) == nullptr || tensor.layout() != at::kStrided) {
    throw Error("{}: tensor {} cannot be written: safetensors has no type for {}", file, in_quotes(name),
                tensor.toString());
  }
}

/// The entries of the tensors with their places one behind the other.
std::vector<TensorEntry> entries_of(const TensorFile& file, const std::string& path) {
  std::set<std::string> names = {"__metadata__"};
  std::vector<TensorEntry> entries;
  uint64_t offset = 0;
  for (const auto& [name, tensor] : file.tensors) {
    check_can_be_written(name, tensor, path);
    if (!names.insert(name).second) {
      throw Error("{}: tensor {} cannot be written: the name is taken", path, in_quotes(name));
    }
    const uint64_t end = offset + tensor.nbytes();
    entries.push_back({name, tensor.scalar_type(), tensor.sizes().vec(), offset, end});
    offset = end;
  }
  return entries;
}

std::string header_text(const std::vector<TensorEntry>& entries,
                        const std::map<std::string, std::string>& metadata, const std::string& path) {
  const auto quoted = [&](const std::string& text) {
    if (well_formed_prefix(text) == text.size()) return json_string(text);
    throw Error("{}: cannot be written: a name or a metadata text is not UTF-8", path);
  };
  std::vector<std::string> members;
  if (!metadata.empty()) {
    std::vector<std::string> texts;
    texts.reserve(metadata.size());
    for (const auto& [key, text] : metadata) texts.push_back(quoted(key) + ":" + quoted(text));
    members.push_back(fmt::format("\"__metadata__\":{{{}}}", fmt::join(texts, ",")));
  }
  for (const auto& entry : entries) {
    members.push_back(fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                                  quoted(entry.name), safetensors_type_name(entry.type),
                                  fmt::join(entry.shape, ","), entry.begin, entry.end));
  }
  std::string text = fmt::format("{{{}}}", fmt::join(members, ","));
  text.resize((text.size() + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment, ' ');
  return text;
}

std::string make_header(const std::vector<TensorEntry>& entries,
                        const std::map<std::string, std::string>& metadata, const std::string& path) {
  std::string header = header_text(entries, metadata, path);
  if (header.size() <= kSafetensorsHeaderMost) return header;
  throw Error("{}: cannot be written: its header would have {} bytes, at most {} are allowed", path,
              header.size(), kSafetensorsHeaderMost);
}

std::span<const std::byte> bytes_of(const at::Tensor& dense) {
  return {static_cast<const std::byte*>(dense.data_ptr()), dense.nbytes()};
}

}  // namespace

const at::Tensor* TensorFile::find(const std::string& name) const {
  const auto found = std::ranges::find(tensors, name, [](const auto& entry) { return entry.first; });
  return found == tensors.end() ? nullptr : &found->second;
}

SafetensorsReader::SafetensorsReader(std::string name, uint64_t file_bytes, Source source)
    : name_(std::move(name)), source_(std::move(source)) {
  std::array<std::byte, kSafetensorsPrefix> prefix{};
  if (file_bytes >= prefix.size()) source_(0, prefix);
  const uint64_t length = safetensors_header_length(prefix, file_bytes, name_);
  std::vector<std::byte> json(length);
  source_(kSafetensorsPrefix, json);
  data_begin_ = kSafetensorsPrefix + length;
  header_ = parse_safetensors_header(json, file_bytes - data_begin_, name_);
  by_name_.resize(header_.entries.size());
  std::iota(by_name_.begin(), by_name_.end(), 0);
  std::ranges::sort(by_name_, {},
                    [&](size_t entry) -> const std::string& { return header_.entries[entry].name; });
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path) {
  const auto file = std::make_shared<const InputFile>(path);
  *this = {file->name(), file->size(),
           [file](uint64_t offset, std::span<std::byte> out) { file->read(offset, out); }};
}

SafetensorsReader::SafetensorsReader(std::span<const std::byte> bytes, std::string_view name)
    : SafetensorsReader(std::string(name), bytes.size(), [bytes](uint64_t offset, std::span<std::byte> out) {
        std::ranges::copy(bytes.subspan(offset, out.size()), out.begin());
      }) {}

const TensorEntry* SafetensorsReader::find(std::string_view name) const {
  const auto name_of = [&](size_t entry) -> std::string_view { return header_.entries[entry].name; };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found == by_name_.end() || name_of(*found) != name ? nullptr : &header_.entries[*found];
}

void SafetensorsReader::read(const TensorEntry& entry, at::Tensor& value) const {
  if (!holds(value, entry)) value = at::empty(entry.shape, at::TensorOptions(entry.type));
  const std::span<std::byte> bytes(static_cast<std::byte*>(value.data_ptr()), value.nbytes());
  source_(data_begin_ + entry.begin, bytes);
  if (entry.type == at::kBool) check_booleans(bytes, entry, name_);
}

TensorFile parse_safetensors(std::span<const std::byte> bytes, std::string_view name) {
  return read_all(SafetensorsReader(bytes, name));
}

TensorFile read_safetensors(const std::filesystem::path& path) { return read_all(SafetensorsReader(path)); }

void write_safetensors(const std::filesystem::path& path, const TensorFile& file,
                       const WriteObserver& observer) {
  const auto entries = entries_of(file, path.string());
  const std::string header = make_header(entries, file.metadata, path.string());
  const uint64_t length = header.size();
  replace_file(path, [&](const ByteSink& sink) {
    sink(std::as_bytes(std::span(&length, 1)));
    sink(std::as_bytes(std::span(header)));
    for (size_t i = 0; i < entries.size(); ++i) {
      // Dense on the CPU it is already, as a rule; otherwise one tensor at a time is copied.
      const at::Tensor dense = file.tensors[i].second.detach().cpu().resolve_neg().contiguous();
      sink(bytes_of(dense));
      if (observer) observer(entries[i], bytes_of(dense));
    }
  });
}

}  // namespace strait
