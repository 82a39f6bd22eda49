#include <ATen/core/ivalue.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <span>
#include <vector>

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
    return store_->read(context.ids, meta, context.device);
  }
  /// A test sample has no buffer.
  at::Tensor evaluation_rows(const MessageMeta& meta, const MessageContext& context) const override {
    return at::zeros(meta.shape, at::TensorOptions(at::kFloat).device(context.device));
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

/// What belongs to a class of samples: the mean, in float64 and in their order, of what is set for its rows.
class ClassState : public SlotState {
 public:
  at::Tensor rows(const MessageMeta& meta, const MessageContext& context) const override {
    check(context, meta.rows());
    return store_.read(context.classes, meta, context.device);
  }
  /// The class of a test sample is what is to be found out.
  at::Tensor evaluation_rows(const MessageMeta& meta, const MessageContext& context) const override {
    return at::zeros(meta.shape, at::TensorOptions(at::kFloat).device(context.device));
  }
  void set_rows(const at::Tensor& value, const MessageContext& context) override {
    check(context, static_cast<size_t>(value.size(0)));
    std::map<int64_t, std::vector<int64_t>> rows_of_class;
    for (size_t row = 0; row < context.classes.size(); ++row) {
      rows_of_class[context.classes[row]].push_back(static_cast<int64_t>(row));
    }
    std::vector<int64_t> classes;
    std::vector<at::Tensor> means;
    for (const auto& [label, rows] : rows_of_class) {
      at::Tensor sum = value[rows.front()].to(at::kDouble);
      for (const int64_t row : std::span(rows).subspan(1)) sum = sum.add(value[row]);
      classes.push_back(label);
      means.push_back(sum.div(static_cast<double>(rows.size())).to(at::kFloat));
    }
    store_.write(classes, at::stack(means));
  }
  at::Tensor room(const MessageMeta& meta) const override { return at::empty(meta.shape, at::kFloat); }
  void visit(std::string_view name, StateVisitor& visitor) override {
    PrefixedVisitor prefixed(std::string(name), visitor);
    store_.visit(prefixed);
  }

 private:
  static void check(const MessageContext& context, size_t rows) {
    STRAIT_CHECK(context.classes.size() == rows, "feedback by class needs the classes of {} samples, got {}",
                 rows, context.classes.size());
  }

  SampleStore store_{StoreOptions()};
};

}  // namespace

std::unique_ptr<SlotState> make_slot_state(const SlotOptions& options) {
  if (options.slots == Slots::rows) return std::make_unique<RowState>();
  if (options.slots == Slots::classes) return std::make_unique<ClassState>();
  return std::make_unique<SampleState>(std::make_shared<SampleStore>(options.store), true);
}

SlotEnds make_slot_ends(const SlotOptions& options) {
  if (options.slots != Slots::samples) return {make_slot_state(options), make_slot_state(options)};
  const auto store = std::make_shared<SampleStore>(options.store);
  return {std::make_unique<SampleState>(store, false), std::make_unique<SampleState>(store, true)};
}

}  // namespace strait
