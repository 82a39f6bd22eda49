# Debian's packages (scripts/setup installs them). Another LibTorch is found through CMAKE_PREFIX_PATH.

find_package(Torch 1.13 REQUIRED)
find_package(Gloo REQUIRED)  # the one that LibTorch was built with
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET libpcre2-8>=10.40)  # \p{White_Space}
find_file(STRAIT_CHART_LIBRARY NAMES chart.min.js PATHS /usr/share/javascript/chart.js REQUIRED)  # Chart.js 3
find_program(STRAIT_BROWSER NAMES chromium REQUIRED)  # opens the report in a test

add_library(strait_torch INTERFACE)
target_link_libraries(strait_torch INTERFACE ${TORCH_LIBRARIES})
target_include_directories(strait_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
separate_arguments(STRAIT_TORCH_FLAGS NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(strait_torch INTERFACE ${STRAIT_TORCH_FLAGS})

# LibTorch's parallel_for is a template: it shares work only where OpenMP is on.
find_package(OpenMP)
if(OpenMP_CXX_FOUND AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_link_libraries(strait_torch INTERFACE OpenMP::OpenMP_CXX)
endif()
