# What `cmake --install` puts where: the libraries, the program, the public headers, a CMake package and pkg-config files.
# Public is what strait/NAME.h reaches through its #include lines, for each NAME here. It is a target strait::NAME and a
# file strait-NAME.pc.

set(STRAIT_PUBLIC codecs pipeline models train experiment planning)
if(STRAIT_REPORT)
  list(APPEND STRAIT_PUBLIC report)
endif()
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/strait)
set(first_includes ${CMAKE_INSTALL_LIBDIR}/strait/first_includes)

# strait_link_closure(LIBRARY OWN OTHERS): the libraries of strait that a program which links LIBRARY links, each before
# those that it uses, and the targets of others.
function(strait_link_closure library own others)
  set(ours "")
  set(foreign "")
  set(waiting ${library})
  # A library that is met again stands too early: it goes to the end, as do those that it uses.
  while(waiting)
    list(POP_FRONT waiting target)
    string(REGEX REPLACE "^\\$<LINK_ONLY:(.*)>$" "\\1" target "${target}")
    if(target MATCHES "^strait_")
      list(REMOVE_ITEM ours ${target})
      list(APPEND ours ${target})
      get_target_property(used ${target} INTERFACE_LINK_LIBRARIES)
      list(APPEND waiting ${used})
    else()
      list(APPEND foreign ${target})
    endif()
  endwhile()
  list(REMOVE_DUPLICATES foreign)
  set(${own} ${ours} PARENT_SCOPE)
  set(${others} ${foreign} PARENT_SCOPE)
endfunction()

# The headers, and fmt's for those who compile against a LibTorch that brings another fmt.
install(CODE "set(STRAIT_PUBLIC \"${STRAIT_PUBLIC}\")
set(STRAIT_SOURCE \"${PROJECT_SOURCE_DIR}\")
set(STRAIT_INCLUDE \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_INCLUDEDIR}\")")
install(SCRIPT ${CMAKE_CURRENT_LIST_DIR}/install_headers.cmake)
install(DIRECTORY ${STRAIT_FIRST_INCLUDES}/ DESTINATION ${first_includes})

# Libraries and program.
get_property(cuda_folder GLOBAL PROPERTY STRAIT_CUDA_LIBRARY_FOLDER)
get_property(libraries GLOBAL PROPERTY STRAIT_LIBRARIES)
install(TARGETS ${libraries} EXPORT strait ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(STRAIT_CLI)
  # INSTALL_RPATH_USE_LINK_PATH leaves out folders of the source tree, where a Python with LibTorch may be.
  set_target_properties(strait PROPERTIES INSTALL_RPATH "${TORCH_INSTALL_PREFIX}/lib;${cuda_folder}")
  install(TARGETS strait RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# pkg-config files. LibTorch has none: its flags stand in ours, those of the LibTorch that strait is built with. pkg-config
# takes flags apart at blanks.
set(pkgconfig_names
  fmt::fmt=fmt nlohmann_json::nlohmann_json=nlohmann_json PkgConfig::hwy=libhwy PkgConfig::xxhash=libxxhash
  PkgConfig::pcre2=libpcre2-8 PkgConfig::utf8proc=libutf8proc PkgConfig::png=libpng PkgConfig::turbojpeg=libturbojpeg CURL::libcurl=libcurl OpenSSL::Crypto=libcrypto OpenSSL::SSL=libssl LibArchive::LibArchive=libarchive
  tomlplusplus::tomlplusplus=tomlplusplus)
set(torch_compile_flags ${TORCH_CXX_FLAGS})
foreach(folder ${TORCH_INCLUDE_DIRS})
  if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    string(REPLACE " " "\\ " folder "${folder}")
    string(APPEND torch_compile_flags " -isystem ${folder}")
  endif()
endforeach()
string(REPLACE " " "\\ " torch_folder "${STRAIT_TORCH_LIBRARY_FOLDER}")
set(torch_link_flags "-lstdc++ -L${torch_folder} -Wl,-rpath,${torch_folder} -Wl,--no-as-needed -ltorch -Wl,--as-needed -ltorch_cpu -lc10")
if(TARGET OpenMP::OpenMP_CXX AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  string(APPEND torch_compile_flags " ${OpenMP_CXX_FLAGS}")
  string(APPEND torch_link_flags " ${OpenMP_CXX_FLAGS}")
endif()
file(RELATIVE_PATH PREFIX_FROM_PKGCONFIG /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" PREFIX_FROM_PKGCONFIG ${PREFIX_FROM_PKGCONFIG})

foreach(name ${STRAIT_PUBLIC})
  strait_link_closure(strait_${name} own others)
  list(TRANSFORM own PREPEND -l)
  list(JOIN own " " LIBRARIES)
  set(REQUIRES "")
  set(COMPILE_FLAGS "")
  foreach(other ${others})
    if(other STREQUAL strait::torch)
      string(APPEND COMPILE_FLAGS " ${torch_compile_flags}")
      string(APPEND LIBRARIES " ${torch_link_flags}")
    elseif(other STREQUAL Threads::Threads)
      string(APPEND LIBRARIES " -pthread")
    elseif(other STREQUAL gloo)
      string(APPEND LIBRARIES " -lgloo")
    elseif(other STREQUAL CUDA::cudart)
      string(REPLACE " " "\\ " folder "${cuda_folder}")
      string(APPEND LIBRARIES " -L${folder} -lcudart")
    else()
      set(found ${pkgconfig_names})
      list(FILTER found INCLUDE REGEX "^${other}=")
      if(NOT found)
        message(FATAL_ERROR "cmake/install.cmake: expected the name that pkg-config has for ${other}")
      endif()
      string(REGEX REPLACE "^.*=" "" found ${found})
      string(APPEND REQUIRES " ${found}")
    endif()
  endforeach()
  set(NAME ${name})
  configure_file(${CMAKE_CURRENT_LIST_DIR}/strait.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/strait-${name}.pc.in @ONLY)
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/pkgconfig/strait-${name}.pc
       INPUT ${PROJECT_BINARY_DIR}/pkgconfig/strait-${name}.pc.in)
  install(FILES ${PROJECT_BINARY_DIR}/pkgconfig/strait-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  string(APPEND NEEDS "set(strait_${name}_needs \"${others}\")\n")
endforeach()

# The CMake package.
include(CMakePackageConfigHelpers)
set(FIRST_INCLUDES ${first_includes})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/strait-config.cmake.in ${PROJECT_BINARY_DIR}/strait-config.cmake
  INSTALL_DESTINATION ${package_folder} PATH_VARS FIRST_INCLUDES)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/strait-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/strait-config.cmake ${PROJECT_BINARY_DIR}/strait-config-version.cmake
              ${CMAKE_CURRENT_LIST_DIR}/torch_target.cmake ${CMAKE_CURRENT_LIST_DIR}/torch_wheel.cmake
        DESTINATION ${package_folder})
install(EXPORT strait FILE strait-targets.cmake NAMESPACE strait:: DESTINATION ${package_folder})
