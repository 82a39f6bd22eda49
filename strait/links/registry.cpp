#include "strait/base/text.h"
#include "strait/links/link.h"

namespace strait {

#define STRAIT_LINK(id, name, symbol) std::unique_ptr<Link> make_##symbol(std::shared_ptr<const Codec> codec);
#include "strait/links/link_list.def"
#undef STRAIT_LINK

namespace {

struct LinkInfo {
  uint16_t id;
  std::string_view name;
  std::unique_ptr<Link> (*factory)(std::shared_ptr<const Codec> codec);
};

constexpr LinkInfo kLinks[] = {
#define STRAIT_LINK(id, name, symbol) {id, name, &make_##symbol},
#include "strait/links/link_list.def"
#undef STRAIT_LINK
};

constexpr bool rows_are_distinct() {
  for (size_t i = 0; i < std::size(kLinks); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (kLinks[i].id == kLinks[j].id || kLinks[i].name == kLinks[j].name) return false;
    }
  }
  return true;
}
static_assert(rows_are_distinct(), "two rows of link_list.def have the same id or name");

}  // namespace

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  for (const auto& info : kLinks) names.emplace_back(info.name);
  return names;
}

std::shared_ptr<const Link> make_link(std::string_view feedback, std::shared_ptr<const Codec> codec) {
  for (const auto& info : kLinks) {
    if (info.name == feedback) {
      auto link = info.factory(std::move(codec));
      link->id_ = info.id;
      return link;
    }
  }
  const auto names = link_names();
  throw InputError("unknown feedback \"{}\"{}; expected one of: {}", feedback, suggestion(feedback, names),
                   list_of(names));
}

}  // namespace strait
