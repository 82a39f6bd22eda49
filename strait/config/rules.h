#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strait/boundary/options.h"

namespace strait {

/// What a key's value must fulfil beyond its type. Called with a value it gives the complaint, or an empty
/// string when all is well. A complaint reads on from the key: `expected an integer >= 1, found 0`.
template <class T>
struct Rule {
  std::string expected;                            ///< such as `an integer >= 1`
  std::function<std::string(const T&)> complaint;  ///< what is wrong with a value; empty where nothing is

  /// The complaint about a value.
  std::string operator()(const T& value) const { return complaint(value); }
};

Rule<int64_t> at_least(int64_t low);               ///< an integer >= low
Rule<int64_t> from_to(int64_t low, int64_t high);  ///< an integer in [low, high]

Rule<bool> yes_or_no();                             ///< nothing beyond the type
Rule<std::vector<int>> each_at_least(int64_t low);  ///< every item of the array

Rule<double> positive();      ///< above 0, finite
Rule<double> not_negative();  ///< 0 or above, finite
Rule<double> below_one();     ///< in [0, 1)

Rule<std::vector<double>> two_below_one();   ///< two numbers, each in [0, 1)
Rule<std::vector<double>> range_of_share();  ///< two numbers in [0, 1], the first below the second

Rule<std::string> path_text();  ///< a path without NUL

/// `others`: what people also call a choice, to be suggested in its place.
Rule<std::string> one_of(const std::vector<std::string>& choices,
                         const std::map<std::string, std::string>& others = {});
Rule<std::string> folder_name();  ///< names one folder on every file system: letters, digits and ._+-
Rule<std::string> duration();     ///< see parse_seconds(); at least a millisecond
Rule<std::string> codec_spec();   ///< what make_codec() takes
Rule<std::string> feedback();     ///< what check_feedback() takes

Rule<std::string> any_text();  ///< nothing beyond the type

/// Nothing beyond the entries' own keys; check() has the rest.
Rule<std::vector<OwnBoundaryOptions>> own_boundaries();

/// No empty name and none twice.
Rule<std::vector<std::string>> distinct_names();

}  // namespace strait
