#pragma once

#include <string>

namespace strait {

/// 32 hexadecimal digits that nobody can guess, from the operating system.
std::string random_token();

}  // namespace strait
