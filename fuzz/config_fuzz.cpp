#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/config/config.h"

/// A configuration from anybody's hand is read or refused with an InputError, and what was read survives
/// being written. The input is a file's text and, behind NUL bytes, the values of `--set` flags.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto overrides = strait::split(std::string_view(reinterpret_cast<const char*>(data), size), '\0');
  const std::string text = overrides.front();
  overrides.erase(overrides.begin());
  strait::Config config;
  try {
    config = strait::parse_config(text, "fuzz.toml", overrides);
  } catch (const strait::InputError&) {
    return 0;
  }
  const auto resolved = strait::to_toml(config);
  STRAIT_CHECK(strait::parse_config(resolved, "resolved.toml") == config, "not the same: {}", resolved);
  return 0;
}
