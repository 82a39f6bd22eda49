# Finds LibTorch: the one that CMAKE_PREFIX_PATH or Torch_DIR names, else the one that scripts/find_torch chooses (a
# Python's or Debian's). Sets STRAIT_TORCH_PYTHON, the interpreter whose torch belongs to it, and STRAIT_HAS_GLOO.

include(${CMAKE_CURRENT_LIST_DIR}/torch_wheel.cmake)
set(STRAIT_TORCH_PYTHON /usr/bin/python3)
set(chosen "")
if(NOT SKBUILD AND (CMAKE_PREFIX_PATH OR (Torch_DIR AND NOT DEFINED STRAIT_TORCH_FOLDER)))
  unset(python)  # of a parent project
  find_program(python NAMES python3 NO_CACHE)
  set(STRAIT_TORCH_PYTHON ${python})
else()
  set(environment "")
  if(SKBUILD)  # pip builds a wheel: its Python says which torch the wheel is for
    set(environment STRAIT_TORCH=${Python_EXECUTABLE})
  endif()
  execute_process(COMMAND ${CMAKE_COMMAND} -E env ${environment} ${PROJECT_SOURCE_DIR}/scripts/find_torch
                  OUTPUT_VARIABLE lines COMMAND_ERROR_IS_FATAL ANY OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(lines)
    string(REPLACE "\n" ";" lines "${lines}")
    list(GET lines 0 chosen)
    list(GET lines 1 STRAIT_TORCH_PYTHON)
  endif()
  if(DEFINED STRAIT_TORCH_FOLDER AND NOT STRAIT_TORCH_FOLDER STREQUAL chosen)
    foreach(found Torch_DIR Caffe2_DIR TORCH_LIBRARY c10_LIBRARY C10_LIBRARY kineto_LIBRARY)
      unset(${found} CACHE)
    endforeach()
  endif()
  set(STRAIT_TORCH_FOLDER "${chosen}" CACHE INTERNAL "The Python's torch that the build uses; empty: Debian's")
endif()

if(chosen)
  set(STRAIT_TORCH_IS_WHEEL TRUE)
  strait_torch_wheel(${chosen})
  set(STRAIT_TORCH_LIBRARY_FOLDER ${chosen}/lib)
else()
  set(STRAIT_TORCH_IS_WHEEL FALSE)
  find_package(Torch 1.13 REQUIRED)
  set(STRAIT_TORCH_LIBRARY_FOLDER $<TARGET_FILE_DIR:torch>)
  set(STRAIT_TORCH_HAS_CUDA FALSE)
  if(TARGET torch_cuda)
    set(STRAIT_TORCH_HAS_CUDA TRUE)
  endif()
endif()

# Whether LibTorch's streams give a device's own handles, which the CUDA kernels take: from 2.11 on.
set(STRAIT_TORCH_HAS_STREAM_HANDLES FALSE)
unset(header)  # of a parent project
find_file(header c10/core/Stream.h PATHS ${TORCH_INCLUDE_DIRS} NO_DEFAULT_PATH NO_CACHE REQUIRED)
file(STRINGS ${header} handle REGEX "native_handle[(]")
if(handle)
  set(STRAIT_TORCH_HAS_STREAM_HANDLES TRUE)
endif()

# A folder with fmt's headers and nothing else, which goes before LibTorch's folders (torch_target.cmake).
find_package(fmt REQUIRED)
get_target_property(STRAIT_FMT_INCLUDE fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
set(STRAIT_FIRST_INCLUDES ${PROJECT_BINARY_DIR}/first_includes)
file(MAKE_DIRECTORY ${STRAIT_FIRST_INCLUDES})
file(CREATE_LINK ${STRAIT_FMT_INCLUDE}/fmt ${STRAIT_FIRST_INCLUDES}/fmt SYMBOLIC)
include(${CMAKE_CURRENT_LIST_DIR}/torch_target.cmake)

# pipeline.transport = "c10d" needs Gloo's headers. PyTorch's wheels have its code inside LibTorch and do not bring them, and those
# of another version do not describe it.
find_package(Gloo QUIET)
if(chosen OR EXISTS ${TORCH_INSTALL_PREFIX}/version.py OR NOT Gloo_FOUND)  # a wheel's folder has version.py
  set(STRAIT_HAS_GLOO FALSE)
  set(transports "processes speak over tcp alone: it comes without Gloo's headers")
else()
  set(STRAIT_HAS_GLOO TRUE)
  set(transports "processes speak over tcp or c10d")
endif()
message(STATUS "LibTorch ${Torch_VERSION} of ${TORCH_INSTALL_PREFIX} (${transports}); tests use the torch of ${STRAIT_TORCH_PYTHON}")
