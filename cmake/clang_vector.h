// Included before everything else when clang compiles (compiler.cmake). LibTorch 1.13 has a std::vector of a
// type that is not complete yet. That is an error only where the vector's functions are constexpr, as they
// are in C++20, and the compiler instantiates those at sight, as clang does. So libstdc++'s <vector>, and
// nothing else, is read here without its constexpr. g++ reads it as it is.
#pragma once
#pragma GCC system_header

#if defined(_STL_ALGOBASE_H) || defined(_GLIBCXX_VECTOR)
#error "<bits/stl_algobase.h> or <vector> has been read already"
#endif

// Declares a constexpr function of vector<bool>'s iterators that <vector> defines; std::fill() over a
// vector<bool> then takes the way of other iterators.
#define _Bit_iterator strait_no_iterator
#include <bits/stl_algobase.h>
#undef _Bit_iterator

#include <iterator>
#include <memory>
#include <string>

#pragma push_macro("_GLIBCXX20_CONSTEXPR")
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#include <vector>
#pragma pop_macro("_GLIBCXX20_CONSTEXPR")
