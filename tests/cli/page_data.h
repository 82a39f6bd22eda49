#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/temp_dir.h"

namespace strait::test {

/// What the charts of a report's page are drawn from.
inline nlohmann::json page_data_of(const std::string& page) {
  const std::string text = read_file(page);
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  const size_t at = text.find(begin) + begin.size();
  return nlohmann::json::parse(text.substr(at, text.find("</script>", at) - at));
}

}  // namespace strait::test
