#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <utility>

namespace strait {

/// Base of every error that strait reports to a person. The message is one line without a trailing
/// full stop and names the thing that is wrong (file, key, tensor, boundary) and what was expected.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;

  /// The message in fmt's format, with its arguments.
  template <class... Args>
  explicit Error(fmt::format_string<Args...> format, Args&&... args)
      : std::runtime_error(fmt::format(format, std::forward<Args>(args)...)) {}
};

/// The command line, a configuration or an input file is wrong: exit status 2.
class InputError : public Error {
  using Error::Error;
};

/// A disk is full or fails, whatever is written for: the same may work another time. Exit status 1.
class DiskError : public Error {
  using Error::Error;
};

/// Bytes that came from a peer are not a valid message: the link they came over is unusable.
class WireError : public Error {
  using Error::Error;
};

/// Another process of the training is gone, silent or has given up.
class PeerError : public Error {
  using Error::Error;
};

/// A tensor holds a value that cannot be sent (not finite, or out of an operator's range). A training
/// run that meets one has diverged: exit status 3.
class NumericError : public Error {
  using Error::Error;
};

/// A broken invariant of strait itself; never caused by input.
class InternalError : public Error {
  using Error::Error;
};

}  // namespace strait

/// Throws InternalError when an invariant does not hold. Active in every build type.
#define STRAIT_CHECK(condition, ...)                                                                \
  do {                                                                                              \
    if (!(condition)) {                                                                             \
      throw ::strait::InternalError("{}:{}: {} ({})", __FILE__, __LINE__, fmt::format(__VA_ARGS__), \
                                    #condition);                                                    \
    }                                                                                               \
  } while (false)
