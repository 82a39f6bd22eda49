#include <algorithm>

#include "strait/base/text.h"
#include "strait/codecs/codec.h"

namespace strait {

#define STRAIT_CODEC(id, name, parameters, ...) \
  std::unique_ptr<Codec> make_##name(CodecIdentity identity, OperatorSpec spec);
#include "strait/codecs/codec_list.def"
#undef STRAIT_CODEC

namespace {

constexpr bool ids_are_distinct() {
  constexpr uint16_t kIds[] = {
#define STRAIT_CODEC(id, name, parameters, ...) id,
#include "strait/codecs/codec_list.def"
#undef STRAIT_CODEC
  };
  for (size_t i = 0; i < std::size(kIds); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (kIds[i] == kIds[j]) return false;
    }
  }
  return true;
}
static_assert(ids_are_distinct(), "two rows of codec_list.def have the same id");

}  // namespace

const std::vector<CodecInfo>& codec_list() {
  static const std::vector<CodecInfo> kList = {
#define STRAIT_CODEC(id, name, parameters, ...) {id, #name, &make_##name, parameters, {__VA_ARGS__}},
#include "strait/codecs/codec_list.def"
#undef STRAIT_CODEC
  };
  return kList;
}

std::span<const CodecScheme> scheme_list() {
  static constexpr CodecScheme kList[] = {
#define STRAIT_SCHEME(activations, gradients) {activations, gradients},
#include "strait/codecs/scheme_list.def"
#undef STRAIT_SCHEME
  };
  return kList;
}

std::shared_ptr<const Codec> make_codec(std::string_view text) {
  OperatorSpec spec = OperatorSpec::parse("codec", text);
  std::vector<std::string> names;
  for (const auto& info : codec_list()) {
    if (info.name == spec.name()) return info.factory({info.id, spec.text()}, spec);
    names.emplace_back(info.name);
  }
  throw InputError("unknown codec \"{}\"{}; expected one of: {}", spec.name(), suggestion(spec.name(), names),
                   list_of(names));
}

}  // namespace strait
