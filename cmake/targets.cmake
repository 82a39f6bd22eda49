# Every target uses the flags of LibTorch, so that tests can share one precompiled torch/torch.h. Most files are compiled
# several at a time (STRAIT_UNITY), because a file's own code takes a small part of what its headers take.

# strait_unity(TARGET FILES): compiles that many files of the target at a time.
function(strait_unity target files)
  if(STRAIT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # A class of a .cpp file may have a member of a type that is the file's own.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Which of a folder's folders holds what is there for several processes, or stands for it.
if(STRAIT_HAS_GLOO)
  set(STRAIT_GLOO_FOLDER gloo)
else()
  set(STRAIT_GLOO_FOLDER without_gloo)
endif()

# strait_library(NAME [UNITY FILES] [FILES ...] [WITHOUT ...] DEPS ...): the library strait::NAME, made of the *.cpp of the
# folder NAME except those after WITHOUT, and of FILES.
function(strait_library name)
  cmake_parse_arguments(ARG "" "UNITY" "FILES;WITHOUT;DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  list(APPEND sources ${ARG_FILES})
  foreach(file ${ARG_WITHOUT})
    list(REMOVE_ITEM sources ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  add_library(strait_${name} STATIC ${sources})
  if(ARG_UNITY)
    strait_unity(strait_${name} ${ARG_UNITY})
  endif()
  add_library(strait::${name} ALIAS strait_${name})
  set_target_properties(strait_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY STRAIT_LIBRARIES strait_${name})
  target_compile_features(strait_${name} PUBLIC cxx_std_20)
  target_include_directories(strait_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(strait_${name} PUBLIC ${ARG_DEPS})
endfunction()

# Compiles the target's files with a shared precompiled torch/torch.h, which takes 20 s to parse. Only what has several
# such files gains by it: it takes 40 s to make.
function(strait_use_torch_pch target)
  if(STRAIT_FUZZ)
    return()
  endif()
  if(NOT TARGET strait_pch)
    add_library(strait_pch STATIC ${PROJECT_SOURCE_DIR}/cmake/pch.cpp)
    target_link_libraries(strait_pch PUBLIC strait::torch fmt::fmt)
    target_precompile_headers(strait_pch PRIVATE <torch/torch.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM strait_pch)
endfunction()

# strait_light(TARGET TEST): counts a test as light: the sanitizer run of `make test` builds and runs it.
if(STRAIT_TESTS)
  add_custom_target(light_tests)
endif()
function(strait_light target test)
  add_dependencies(light_tests ${target})
  set_property(TEST ${test} APPEND PROPERTY LABELS light)
endfunction()

# strait_test(NAME [PCH] [LIGHT] [UNITY FILES] DEPS ...): one test program of tests/NAME/*_test.cpp, and of those in the
# folder there that STRAIT_GLOO_FOLDER names. LIGHT counts it as light (see strait_light).
function(strait_test name)
  cmake_parse_arguments(ARG "PCH;LIGHT" "UNITY" "DEPS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*_test.cpp
       ${CMAKE_CURRENT_SOURCE_DIR}/${name}/${STRAIT_GLOO_FOLDER}/*_test.cpp)
  add_executable(test_${name} ${sources})
  if(NOT ARG_UNITY)
    set(ARG_UNITY 5)
  endif()
  strait_unity(test_${name} ${ARG_UNITY})
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPS} strait_test_support GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  # A GPU is left to the tests that are for it: others compare with what a CPU computes.
  set_tests_properties(${name} PROPERTIES ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;CUDA_VISIBLE_DEVICES=")
  if(ARG_PCH)
    strait_use_torch_pch(test_${name})
  endif()
  if(ARG_LIGHT)
    strait_light(test_${name} ${name})
  endif()
endfunction()

# strait_embed(LIBRARY NAMESPACE ns NAME=FILE...): adds the bytes of files to the library of that folder, each as
# a std::string_view; see embed.cmake.
function(strait_embed library)
  cmake_parse_arguments(ARG "" "NAMESPACE" "" ${ARGN})
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${library}_files.cpp)
  foreach(pair ${ARG_UNPARSED_ARGUMENTS})
    string(REGEX MATCH "^([^=]+)=(.+)$" pair "${pair}")
    get_filename_component(file "${CMAKE_MATCH_2}" ABSOLUTE)
    list(APPEND files ${file})
    list(APPEND pairs ${CMAKE_MATCH_1}=${file})
  endforeach()
  add_custom_command(OUTPUT ${output} VERBATIM
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DNAMESPACE=${ARG_NAMESPACE} -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
            -- ${pairs}
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake)
  target_sources(strait_${library} PRIVATE ${output})
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Runs a light test's command on every instruction set that the kernels are compiled for, not the processor's best
# alone.
function(strait_on_every_target test)
  if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
    return()
  endif()
  foreach(target AVX2 SSE4 SSSE3 SCALAR)
    add_test(NAME ${test}_${target} COMMAND ${ARGN} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${test}_${target} PROPERTIES LABELS light
      ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0;STRAIT_KERNELS=${target}")
  endforeach()
endfunction()
