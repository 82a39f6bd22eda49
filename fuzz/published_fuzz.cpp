#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "strait/base/error.h"
#include "strait/base/json.h"
#include "strait/models/kinds.h"

/// A config.json from anybody's hand is read by every kind of network that knows of such files, or refused with
/// an InputError; what was read is of the keys' types, and about settings that do not go together there is a
/// complaint.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& kind : strait::model_kinds()) {
    if (kind.published == nullptr) continue;
    try {
      const auto root = strait::parse_json(text, "config.json");
      strait::PublishedConfig file(root, "config.json", kind.keys);
      kind.published(file);
      strait::ModelOptions options(kind.name);
      for (const auto& said : file.settings()) options.settings.set(said.key, said.value);
      if (!kind.complaint(options.settings, {.shape = {16}}))
        kind.parameters(options.settings, {.shape = {16}});
    } catch (const strait::InputError&) {
      continue;
    }
  }
  return 0;
}
