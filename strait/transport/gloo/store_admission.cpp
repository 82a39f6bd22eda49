#include "strait/transport/gloo/store_admission.h"

#include <utility>

#include "strait/transport/gloo/store_protocol.h"

namespace strait {

using store::Answer;

StoreAdmission::StoreAdmission(int ranks, std::string attempt)
    : attempt_(std::move(attempt)), came_(static_cast<size_t>(ranks)), missing_(came_.size()) {}

Answer StoreAdmission::admit(uint32_t rank, std::string_view attempt) {
  if (attempt != attempt_) return Answer::other_attempt;
  if (rank >= came_.size()) return Answer::no_such_rank;
  if (came_[rank]) return Answer::taken;
  came_[rank] = true;
  missing_ -= 1;
  return Answer::welcome;
}

}  // namespace strait
