#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strait/base/error.h"
#include "strait/base/text.h"
#include "strait/report/writers.h"

/// What a run or a sweep left is refused with an InputError, or every form of the report can be written of it.
/// The input is a sweep.json and, behind NUL bytes, the status.json and metrics.jsonl of a run.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strait::report;
  auto texts = strait::split(std::string_view(reinterpret_cast<const char*>(data), size), '\0');
  texts.resize(3);
  std::vector<Table> tables;
  try {
    tables.push_back(parse_sweep("/no/such/folder", texts[0]));
  } catch (const strait::InputError&) {
    tables.clear();
  }
  try {
    const Run run = parse_run("run", {.status = texts[1], .config = "", .metrics = texts[2]});
    tables.push_back({"runs", "Runs", {{run.name, {}, {run}}}});
  } catch (const strait::InputError&) {
    if (tables.empty()) return 0;
  }
  to_markdown(tables);
  results_csv(tables);
  bytes_csv(tables);
  to_latex(tables);
  to_html(tables);
  return 0;
}
