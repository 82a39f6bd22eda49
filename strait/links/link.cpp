#include "strait/links/link.h"

#include "strait/codecs/selective.h"

namespace strait {

std::vector<SparseShape> Link::index_sets(const MessageMeta& meta) const {
  const Selective* selective = codec_->selective();
  if (selective == nullptr) return {};
  return {selective->shape_of(meta)};
}

MessageOperator Link::reference(ApplyCodec /*apply*/) const { return {}; }

}  // namespace strait
