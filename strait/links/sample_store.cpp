#include "strait/links/sample_store.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "strait/base/text.h"
#include "strait/codecs/device_payload.h"

namespace strait {
namespace {

MappedMemory make_memory(const StoreOptions& options) {
  if (!options.is_in_file()) return MappedMemory();
  return MappedMemory(options.folder.empty() ? std::filesystem::temp_directory_path()
                                             : std::filesystem::path(options.folder));
}

/// Of the buffers that are there; 0 before the first.
void expect_size(size_t found, size_t row_bytes) {
  if (row_bytes == 0 || found == row_bytes) return;
  throw InputError("its feedback keeps buffers of {} bytes, found samples that take {}", row_bytes, found);
}

/// Of what a loading visitor gave.
void expect_state(bool holds, std::string_view name) {
  if (!holds) throw InputError("tensor \"{}\" is not the state of a store of buffers", name);
}

/// Each row becomes the mean of those of its class.
at::Tensor mean_of_classes(const at::Tensor& values, const MessageContext& context) {
  at::Tensor means = values.clone();
  for (size_t row = 0; row < context.classes.size(); ++row) {
    std::vector<int64_t> alike;
    for (size_t other = 0; other < context.classes.size(); ++other) {
      if (context.classes[other] == context.classes[row]) alike.push_back(static_cast<int64_t>(other));
    }
    means[static_cast<int64_t>(row)].copy_(values.index_select(0, at::tensor(alike)).to(at::kDouble).mean(0));
  }
  return means;
}

}  // namespace

std::vector<std::string> store_places() { return {"memory", "file"}; }

std::vector<std::string> store_fills() { return {"first_visit", "warmup"}; }

std::vector<std::string> store_formats() { return {"fp32", "bf16", "quant:8", "quant:4", "quant:2"}; }

StoreOptions read_store_options(OperatorSpec& spec, bool has_fill) {
  StoreOptions store;
  const auto choose = [&](const char* key, std::string& field, const std::vector<std::string>& choices) {
    field = spec.option(key, field);
    if (std::ranges::find(choices, field) == choices.end()) {
      spec.reject(key, field, "one of: " + list_of(choices));
    }
  };
  choose("place", store.place, store_places());
  choose("format", store.format, store_formats());
  if (has_fill) choose("fill", store.fill, store_fills());
  store.folder = spec.option("folder", store.folder);
  return store;
}

SlotOptions read_slot_options(OperatorSpec& spec, bool has_fill) {
  const std::string slots = spec.option("slots", "rows");
  if (slots == "rows") return {};
  if (slots == "class") return {Slots::classes, {}};
  if (slots != "sample") spec.reject("slots", slots, "one of: rows, sample, class");
  return {Slots::samples, read_store_options(spec, has_fill)};
}

void expect_distinct(std::string_view place, std::vector<int64_t> ids) {
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice == ids.end()) return;
  throw InputError("{}: expected each sample once in a batch, found id {} twice", place, *twice);
}

Keeping keeping_of(const SlotOptions& options) {
  if (options.slots == Slots::classes) return mean_of_classes;
  if (options.store.format == StoreOptions().format) {
    return [](const at::Tensor& values, const MessageContext& /*context*/) { return values; };
  }
  return [format = std::shared_ptr<const ValueFormat>(make_value_format(options.store.format))](
             const at::Tensor& values, const MessageContext& /*context*/) {
    return format->reconstruct(values.reshape({values.size(0), -1}), {}).view_as(values);
  };
}

size_t store_row_bytes(const StoreOptions& options, size_t elements) {
  return make_value_format(options.format)->size(elements);
}

SampleStore::SampleStore(const StoreOptions& options)
    : format_(make_value_format(options.format)), memory_(make_memory(options)) {
  STRAIT_CHECK(format_ != nullptr, "a store of format {}", options.format);
  if (memory_.has_file()) advisor_.emplace(1);
}

at::Tensor SampleStore::read(std::span<const int64_t> ids, const MessageMeta& meta, c10::Device device) const {
  const size_t elements = meta.row_size();
  if (device.is_cpu()) {
    at::Tensor out = at::empty(meta.shape, at::kFloat);
    read_rows(ids, elements, {out.data_ptr<float>(), meta.elements()});
    return out;
  }
  const at::Tensor bytes =
      bytes_on_device(meta.elements() * sizeof(float), device, [&](std::span<std::byte> space) {
        read_rows(ids, elements, {reinterpret_cast<float*>(space.data()), meta.elements()});
      });
  return bytes.view(at::kFloat).view(meta.shape);
}

void SampleStore::read_rows(std::span<const int64_t> ids, size_t elements, std::span<float> out) const {
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto row = out.subspan(i * elements, elements);
    const auto place = slots_.find(ids[i]);
    if (place == slots_.end()) {
      std::ranges::fill(row, 0.0F);
      continue;
    }
    expect_size(format_->size(elements), row_bytes_);
    format_->read(memory_.bytes().subspan(place->second * row_bytes_, row_bytes_), {}, row);
  }
}

void SampleStore::write(std::span<const int64_t> ids, const at::Tensor& values) {
  if (ids.empty()) return;
  const size_t elements = meta_of(values).row_size();
  const size_t size = format_->size(elements);
  expect_size(size, row_bytes_);
  const at::Tensor dense = values.contiguous();
  const float* const rows =
      dense.is_cpu() ? dense.data_ptr<float>()
                     : reinterpret_cast<const float*>(bytes_on_host(dense.view(-1).view(at::kByte)).data());
  rounded_.resize(ids.size() * size);
  for (size_t i = 0; i < ids.size(); ++i) {
    format_->write({rows + i * elements, elements}, {}, std::span(rounded_).subspan(i * size, size));
  }
  row_bytes_ = size;
  const auto fresh = std::ranges::count_if(ids, [&](int64_t id) { return !slots_.contains(id); });
  make_room(ids_.size() + static_cast<size_t>(fresh),
            ids_.size() / 16 + 16);  // it may throw: nothing is changed yet
  std::vector<size_t> written;
  for (size_t i = 0; i < ids.size(); ++i) {
    const auto [place, is_new] = slots_.try_emplace(ids[i], ids_.size());
    if (is_new) ids_.push_back(ids[i]);
    const size_t offset = place->second * row_bytes_;
    std::memcpy(memory_.bytes().data() + offset, rounded_.data() + i * size, size);
    written.push_back(offset);
  }
  advise(&MappedMemory::write_behind, std::move(written));
}

void SampleStore::make_room(size_t slots, size_t ahead) {
  if (slots * row_bytes_ > memory_.bytes().size()) memory_.grow((slots + ahead) * row_bytes_);
}

void SampleStore::prefetch(std::span<const int64_t> ids) {
  std::vector<size_t> offsets;
  for (const int64_t id : ids) {
    if (const auto place = slots_.find(id); place != slots_.end()) {
      offsets.push_back(place->second * row_bytes_);
    }
  }
  advise(&MappedMemory::read_ahead, std::move(offsets));
}

void SampleStore::advise(void (MappedMemory::*advice)(size_t offset, size_t size) const,
                         std::vector<size_t> offsets) {
  if (!advisor_ || offsets.empty()) return;
  advisor_->post(0, [&file = memory_, advice, offsets = std::move(offsets), size = row_bytes_] {
    for (const size_t offset : offsets) (file.*advice)(offset, size);
  });
}

void SampleStore::visit(StateVisitor& visitor) {
  // The sizes come first, so that a loading visitor finds the rows' memory ready to be read into.
  at::Tensor size;
  at::Tensor ids;
  if (!ids_.empty()) {
    size = at::full({1}, static_cast<int64_t>(row_bytes_), at::kLong);
    ids = at::from_blob(ids_.data(), {static_cast<int64_t>(ids_.size())}, at::kLong).clone();
  }
  visitor.tensor("row_bytes", size);
  visitor.tensor("ids", ids);
  if (!ids.defined()) {
    ids_.clear();
    slots_.clear();
    row_bytes_ = 0;
    return;
  }
  expect_state(
      size.defined() && size.scalar_type() == at::kLong && size.numel() == 1 && size.item<int64_t>() > 0,
      "row_bytes");
  expect_state(ids.scalar_type() == at::kLong && ids.dim() == 1, "ids");
  row_bytes_ = static_cast<size_t>(size.item<int64_t>());
  ids_.assign(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
  slots_.clear();
  for (size_t slot = 0; slot < ids_.size(); ++slot) slots_.emplace(ids_[slot], slot);
  make_room(ids_.size(), 0);
  at::Tensor rows = at::from_blob(
      memory_.bytes().data(), {static_cast<int64_t>(ids_.size()), static_cast<int64_t>(row_bytes_)}, at::kByte);
  visitor.tensor("rows", rows);
  if (rows.data_ptr() == memory_.bytes().data()) return;
  expect_state(rows.scalar_type() == at::kByte && rows.is_contiguous() &&
                   rows.sizes().vec() == std::vector<int64_t>{ids.numel(), size.item<int64_t>()},
               "rows");
  std::memcpy(memory_.bytes().data(), rows.data_ptr(), rows.nbytes());
}

}  // namespace strait
