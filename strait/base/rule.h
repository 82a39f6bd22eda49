#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

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

Rule<bool> yes_or_no();  ///< nothing beyond the type

Rule<double> positive();      ///< above 0, finite in float32
Rule<double> not_negative();  ///< 0 or above, finite in float32
Rule<double> below_one();     ///< in [0, 1)

Rule<std::vector<double>> two_below_one();   ///< two numbers, each in [0, 1)
Rule<std::vector<double>> range_of_share();  ///< two numbers in [0, 1], the first below the second
Rule<std::vector<double>> three_numbers();   ///< three finite numbers
Rule<std::vector<double>> three_positive();  ///< three finite numbers above 0

Rule<std::string> path_text();  ///< a path in UTF-8 without NUL
/// `others`: what people also call a choice, to be suggested in its place.
Rule<std::string> one_of(const std::vector<std::string>& choices,
                         const std::map<std::string, std::string>& others = {});

}  // namespace strait
