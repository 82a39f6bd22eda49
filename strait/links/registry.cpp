#include "strait/base/text.h"
#include "strait/links/link.h"

namespace strait {

#define STRAIT_LINK(id, name, symbol) \
  std::unique_ptr<Link> make_##symbol(uint16_t id_, std::shared_ptr<const Codec> codec, OperatorSpec spec);
#include "strait/links/link_list.def"
#undef STRAIT_LINK

namespace {

/// One row of link_list.def.
struct LinkInfo {
  uint16_t id;
  std::string_view name;
  std::unique_ptr<Link> (*factory)(uint16_t id, std::shared_ptr<const Codec> codec, OperatorSpec spec);

  std::shared_ptr<const Link> make(std::shared_ptr<const Codec> codec, OperatorSpec spec) const {
    return factory(id, std::move(codec), std::move(spec));
  }
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

/// A row that is no feedback scheme of its own.
constexpr std::string_view kReuse = "reuse";

/// The row of a feedback scheme.
const LinkInfo& info_of(const std::string& name) {
  for (const auto& info : kLinks) {
    if (info.name == name && info.name != kReuse) return info;
  }
  const auto names = link_names();
  throw InputError("unknown feedback \"{}\"{}; expected one of: {}", name, suggestion(name, names),
                   list_of(names));
}

void set_defaults(OperatorSpec& spec, const StoreOptions& store) {
  spec.set_default("place", store.place);
  spec.set_default("format", store.format);
  spec.set_default("folder", store.folder);
  spec.set_default("fill", store.fill);
}

}  // namespace

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  for (const auto& info : kLinks) {
    if (info.name != kReuse) names.emplace_back(info.name);
  }
  return names;
}

std::shared_ptr<const Link> make_link(std::shared_ptr<const Codec> codec, std::string_view feedback,
                                      const StoreOptions& store) {
  OperatorSpec spec = OperatorSpec::parse("feedback", feedback);
  const LinkInfo& info = info_of(spec.name());
  auto link = info.make(codec, spec);
  if (link->store() == nullptr) return link;
  set_defaults(spec, store);
  return info.make(std::move(codec), std::move(spec));
}

std::shared_ptr<const Link> make_link(std::string_view codec, std::string_view feedback,
                                      const StoreOptions& store) {
  return make_link(make_codec(codec), feedback, store);
}

std::shared_ptr<const Link> make_link(const std::shared_ptr<const Link>& compressor,
                                      std::string_view feedback) {
  if (compressor->slots() == Link::Slots::samples || compressor->reuses_indices()) {
    throw InputError("feedback \"{}\" goes around no link that keeps samples or reuses indices", feedback);
  }
  auto link = make_link(compressor->shared_codec(), feedback)->around(compressor);
  if (link == nullptr) {
    throw InputError("feedback \"{}\" does not go around this compressor, which has state of its own",
                     feedback);
  }
  return link;
}

void check_feedback(std::string_view feedback) {
  make_link("topk:1", feedback);  // a codec that every link can serve
}

std::shared_ptr<const Link> make_reuse_link(std::shared_ptr<const Codec> codec) {
  for (const auto& info : kLinks) {
    if (info.name == kReuse) return info.make(std::move(codec), OperatorSpec::parse("feedback", kReuse));
  }
  throw InternalError("link_list.def has no row {}", kReuse);
}

}  // namespace strait
