#pragma once

#include <string>

namespace strait::test {

/// Runs a script of tests/python with Debian's python3 and returns what it printed. Throws std::runtime_error
/// when it fails, with its standard error on ours.
std::string run_python(const std::string& script, const std::string& arguments);

/// The same with the Python whose torch goes with the LibTorch of this build.
std::string run_torch_python(const std::string& script, const std::string& arguments);

/// The path of that Python.
std::string torch_python();

}  // namespace strait::test
