# Flags that every target of the project is compiled with.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug or Release" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")  # strait/CMakeLists.txt asks for -O3 where loops matter

# The codecs' arithmetic is float32 in one documented order: a fused multiply-add would change bits.
add_compile_options(-Wall -Wextra -Wpedantic -Werror -Wno-error=deprecated-declarations -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports overflows inside fmt 9 that cannot happen.
  add_compile_options(-Wno-stringop-overflow -Wno-array-bounds)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options("SHELL:-include ${CMAKE_CURRENT_LIST_DIR}/clang_vector.h")
endif()

if(STRAIT_SANITIZE OR STRAIT_FUZZ)
  set(STRAIT_SANITIZE_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  # LibTorch is not instrumented, and its vtables confuse the check of dynamic types.
  list(APPEND STRAIT_SANITIZE_FLAGS -fno-sanitize=vptr)
  add_compile_options(${STRAIT_SANITIZE_FLAGS})
  add_link_options(${STRAIT_SANITIZE_FLAGS})
endif()
if(STRAIT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # A precompiled header is cached only when its dates and defines may be ignored.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
endif()
