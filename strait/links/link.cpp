#include "strait/links/link.h"

#include "strait/codecs/sparsifier.h"

namespace strait {

std::vector<SparseShape> Link::index_sets(const MessageMeta& meta) const {
  const Sparsifier* sparsifier = codec_->sparsifier();
  if (sparsifier == nullptr || !sparsifier->sends_index_sets()) return {};
  return {sparsifier->shape_of(meta)};
}

void expect_no_previous(std::string_view place, const Link& link) {
  if (!link.needs_previous()) return;
  throw InputError(
      "{}: expected feedback that needs its message alone; this one needs gradients at the weights of the step "
      "before, which are there for compression.replicas of a training",
      place);
}

std::shared_ptr<Link> Link::around(std::shared_ptr<const Link> /*compressor*/) const { return nullptr; }

MessageOperator Link::reference(ApplyCodec /*apply*/) const { return {}; }

}  // namespace strait
