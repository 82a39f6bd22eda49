# Flags that every target of strait is compiled with, and no other: they do not reach a project that strait is part of.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2")  # folders ask for -O3 where loops matter, and for -O1 where there are none

# The codecs' arithmetic is float32 in one documented order: a fused multiply-add would change bits.
add_compile_options(-Wall -Wextra -Wpedantic -ffp-contract=off)
if(STRAIT_WERROR)
  add_compile_options(-Werror -Wno-error=deprecated-declarations)
endif()
# What is installed names files by their place in the source tree.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overflows inside fmt 9 that cannot happen.
  add_compile_options(-Wno-stringop-overflow -Wno-array-bounds)
endif()

if(STRAIT_PYTHON)
  # The libraries become a part of a shared one. One flag for all: programs share a precompiled header with them.
  add_compile_options(-fPIC -fno-semantic-interposition)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-include \"${CMAKE_CURRENT_LIST_DIR}/clang_vector.h\"")
endif()

if(STRAIT_FUZZ AND NOT STRAIT_SANITIZE)
  set(STRAIT_SANITIZE address)
endif()
if(STRAIT_SANITIZE STREQUAL address)
  # LibTorch is not instrumented, and its vtables confuse the check of dynamic types.
  set(flags -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-sanitize=vptr)
elseif(STRAIT_SANITIZE STREQUAL thread)
  # Asio's fences are not seen; its locks, which order everything here, are.
  set(flags -fsanitize=thread -Wno-tsan)
elseif(STRAIT_SANITIZE)
  message(FATAL_ERROR "STRAIT_SANITIZE is ${STRAIT_SANITIZE}, expected address or thread")
endif()
if(STRAIT_SANITIZE)
  add_compile_options(${flags} -fno-omit-frame-pointer)
  add_link_options(${flags})
endif()
if(STRAIT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(STRAIT_CCACHE ccache)
if(STRAIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header is cached only when its dates and defines may be ignored.
  set(settings CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime)
  # What is compiled in one of the tree's folders serves all that lie beside it: paths count from there. In a folder
  # elsewhere they would show in what is installed.
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" NORMALIZE is_inside)
  if(is_inside)
    list(APPEND settings CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1)
  endif()
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env ${settings} ${STRAIT_CCACHE})
endif()
