#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "strait/links/sample_store.h"
#include "strait/links/slot_state.h"

namespace strait {
namespace {

/// What belongs to a sample, wherever it stands in a batch, rounded to the store's format.
class SampleState : public SlotState {
 public:
  /// Without `updates` the other end, which shares the store, changes and shows it.
  SampleState(std::shared_ptr<SampleStore> store, bool updates) : store_(std::move(store)), updates_(updates) {}

  at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const override {
    STRAIT_CHECK(context.ids.size() == meta.rows(), "feedback by sample needs the ids of {} samples, got {}",
                 meta.rows(), context.ids.size());
    return store_->read(context.ids, meta);
  }
  /// A test sample has no buffer.
  at::Tensor evaluation_rows(const MessageMeta& meta, const MessageContext& /*context*/) const override {
    return at::zeros(meta.shape, at::kFloat);
  }
  void set_rows(const at::Tensor& value, const MessageContext& context) override {
    if (updates_) store_->write(context.ids, value);
  }
  at::Tensor room(const MessageMeta& meta) const override { return at::empty(meta.shape, at::kFloat); }
  void prefetch(std::span<const int64_t> ids) override {
    if (updates_) store_->prefetch(ids);
  }
  void visit(std::string_view name, StateVisitor& visitor) override {
    if (!updates_) return;
    PrefixedVisitor prefixed(std::string(name), visitor);
    store_->visit(prefixed);
  }

 private:
  std::shared_ptr<SampleStore> store_;
  bool updates_;
};

}  // namespace

std::unique_ptr<SlotState> make_slot_state(const SlotOptions& options) {
  if (options.slots == Slots::rows) return std::make_unique<RowState>();
  return std::make_unique<SampleState>(std::make_shared<SampleStore>(options.store), true);
}

SlotEnds make_slot_ends(const SlotOptions& options) {
  if (options.slots == Slots::rows) return {make_slot_state(options), make_slot_state(options)};
  const auto store = std::make_shared<SampleStore>(options.store);
  return {std::make_unique<SampleState>(store, false), std::make_unique<SampleState>(store, true)};
}

}  // namespace strait
