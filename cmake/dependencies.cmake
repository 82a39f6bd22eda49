# Debian's packages (scripts/setup installs them), and LibTorch.

include(cmake/torch.cmake)
find_package(Threads REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(LibArchive REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(hwy REQUIRED IMPORTED_TARGET GLOBAL libhwy)
pkg_check_modules(xxhash REQUIRED IMPORTED_TARGET GLOBAL libxxhash)
pkg_check_modules(png REQUIRED IMPORTED_TARGET GLOBAL libpng)
pkg_check_modules(turbojpeg REQUIRED IMPORTED_TARGET GLOBAL libturbojpeg)
pkg_check_modules(pcre2 REQUIRED IMPORTED_TARGET GLOBAL libpcre2-8>=10.40)  # \p{White_Space}
pkg_check_modules(utf8proc REQUIRED IMPORTED_TARGET GLOBAL libutf8proc)
find_package(tomlplusplus REQUIRED)
if(STRAIT_CLI)
  find_package(CLI11 REQUIRED)
endif()
if(STRAIT_REPORT)
  find_file(STRAIT_CHART_LIBRARY NAMES chart.min.js PATHS /usr/share/javascript/chart.js REQUIRED)  # Chart.js 3
endif()
if(STRAIT_TESTS)
  find_package(GTest REQUIRED)
  find_program(STRAIT_BROWSER NAMES chromium REQUIRED)  # opens the report in a test
endif()
