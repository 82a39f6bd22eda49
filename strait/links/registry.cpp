#include <algorithm>
#include <utility>

#include "strait/base/text.h"
#include "strait/codecs/sparsifier.h"
#include "strait/links/integers.h"

namespace strait {

#define STRAIT_LINK(id, name, symbol, parameters, ...) \
  std::unique_ptr<Link> make_##symbol(uint16_t id_, std::shared_ptr<const Codec> codec, OperatorSpec spec);
#include "strait/links/link_list.def"
#undef STRAIT_LINK

namespace {

constexpr bool rows_are_distinct() {
  constexpr std::pair<uint16_t, std::string_view> kRows[] = {
#define STRAIT_LINK(id, name, symbol, parameters, ...) {id, name},
#include "strait/links/link_list.def"
#undef STRAIT_LINK
  };
  for (size_t i = 0; i < std::size(kRows); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (kRows[i].first == kRows[j].first || kRows[i].second == kRows[j].second) return false;
    }
  }
  return true;
}
static_assert(rows_are_distinct(), "two rows of link_list.def have the same id or name");

const std::vector<LinkInfo>& all_rows() {
  static const std::vector<LinkInfo> kRows = {
#define STRAIT_LINK(id, name, symbol, parameters, ...) {id, name, &make_##symbol, parameters, {__VA_ARGS__}},
#include "strait/links/link_list.def"
#undef STRAIT_LINK
  };
  return kRows;
}

std::shared_ptr<const Link> make(const LinkInfo& info, std::shared_ptr<const Codec> codec, OperatorSpec spec) {
  std::string text = spec.text_without({"place", "folder"});
  auto link = info.factory(info.id, std::move(codec), std::move(spec));
  link->set_spec(std::move(text));
  return link;
}

/// The row of a feedback scheme.
const LinkInfo& info_of(const std::string& name) {
  const auto info = std::ranges::find(link_list(), name, &LinkInfo::name);
  if (info != link_list().end()) return *info;
  const auto names = link_names();
  throw InputError("unknown feedback \"{}\"{}; expected one of: {}", name, suggestion(name, names),
                   list_of(names));
}

/// A link that is no feedback scheme of its own.
std::shared_ptr<const Link> make_unnamed(std::shared_ptr<const Codec> codec, std::string_view text) {
  const OperatorSpec spec = OperatorSpec::parse("link", text);
  const auto info = std::ranges::find(all_rows(), spec.name(), &LinkInfo::name);
  STRAIT_CHECK(info != all_rows().end(), "link_list.def has no row {}", spec.name());
  return make(*info, std::move(codec), spec);
}

void set_defaults(OperatorSpec& spec, const StoreOptions& store) {
  spec.set_default("place", store.place);
  spec.set_default("format", store.format);
  spec.set_default("folder", store.folder);
  spec.set_default("fill", store.fill);
}

}  // namespace

const std::vector<LinkInfo>& link_list() {
  static const std::vector<LinkInfo> kList = [] {
    std::vector<LinkInfo> rows = all_rows();
    std::erase_if(rows, [](const LinkInfo& info) { return info.samples.empty(); });
    return rows;
  }();
  return kList;
}

std::vector<std::string> link_names() {
  std::vector<std::string> names;
  for (const auto& info : link_list()) names.emplace_back(info.name);
  return names;
}

std::vector<std::string> link_forms() {
  std::vector<std::string> forms;
  for (const auto& info : link_list()) forms.push_back(fmt::format("{}{}", info.name, info.parameters));
  return forms;
}

std::vector<std::string> link_samples() {
  std::vector<std::string> samples;
  for (const auto& info : link_list()) samples.insert(samples.end(), info.samples.begin(), info.samples.end());
  return samples;
}

std::shared_ptr<const Link> make_link(std::shared_ptr<const Codec> codec, std::string_view feedback,
                                      const StoreOptions& store) {
  OperatorSpec spec = OperatorSpec::parse("feedback", feedback);
  const LinkInfo& info = info_of(spec.name());
  auto link = make(info, codec, spec);
  if (link->store() == nullptr) return link;
  set_defaults(spec, store);
  return make(info, std::move(codec), std::move(spec));
}

std::shared_ptr<const Link> make_link(std::string_view codec, std::string_view feedback,
                                      const StoreOptions& store) {
  return make_link(make_codec(codec), feedback, store);
}

std::shared_ptr<const Link> make_link(const std::shared_ptr<const Link>& compressor,
                                      std::string_view feedback) {
  if (!compressor->serves_weights() || compressor->reuses_indices()) {
    throw InputError("feedback \"{}\" goes around no link that keeps samples or classes or reuses indices",
                     feedback);
  }
  const auto plain = make_link(compressor->shared_codec(), feedback);
  const auto link = plain->around(compressor);
  if (link == nullptr) {
    throw InputError("feedback \"{}\" does not go around this compressor, which has state of its own",
                     feedback);
  }
  link->set_spec(plain->spec());
  return link;
}

std::shared_ptr<const Codec> codec_for_any_link() {
  for (const CodecInfo& info : codec_list()) {
    for (const std::string_view sample : info.samples) {
      auto codec = make_codec(sample);
      // Each is what some link asks for: rows by themselves, a selection, one of the largest.
      if (codec->is_row_wise() && codec->sparsifier() != nullptr &&
          codec->sparsifier()->half(Sparsifier::Half::larger) != nullptr) {
        return codec;
      }
    }
  }
  throw InternalError("no codec that every link can serve");
}

void check_feedback(std::string_view feedback) { make_link(codec_for_any_link(), feedback); }

std::shared_ptr<const Link> make_reuse_link(std::shared_ptr<const Codec> codec) {
  return make_unnamed(std::move(codec), "reuse");
}

std::shared_ptr<const Link> make_integer_link(int64_t limit) {
  return make_unnamed(make_codec(kUncompressed), fmt::format("integers:{}", limit));
}

}  // namespace strait
