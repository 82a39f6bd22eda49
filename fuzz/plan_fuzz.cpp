// parse_plan() of any text; what it accepts must survive its round trip, and validate() and simulate() must
// accept it or say what is wrong.

#include "strait/base/error.h"
#include "strait/pipeline/simulate.h"
#include "strait/pipeline/validate.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const auto plan = strait::parse_plan({reinterpret_cast<const char*>(data), size});
    STRAIT_CHECK(strait::parse_plan(strait::to_text(plan)) == plan, "the plan's text says something else");
    strait::simulate(plan);
  } catch (const strait::InputError&) {  // the right answer to a text that is no plan
  }
  return 0;
}
