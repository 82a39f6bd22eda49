# The CUDA kernels (strait/kernels/cuda), compiled by nvcc in commands of their own: CMake's CUDA language would try its
# compiler when the project is configured, and they need nothing of it. Flags are in strait/kernels/cuda/nvcc_options.
#
# STRAIT_CUDA: AUTO, where nvcc is found; ON, which requires it; OFF. Sets STRAIT_NVCC, empty where nothing is compiled, and
# says in one line what is.

set(STRAIT_CUDA AUTO CACHE STRING "Compile the CUDA kernels: AUTO (where nvcc is found), ON or OFF")
set_property(CACHE STRAIT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STRAIT_CUDA_ARCHITECTURES 75 80 86 89 90 100 CACHE STRING "What the CUDA kernels are compiled for; the last one also as PTX")

set(STRAIT_NVCC "")
if(STRAIT_CUDA STREQUAL OFF)
  set(found "not compiled, as STRAIT_CUDA is OFF")
elseif(STRAIT_CUDA STREQUAL AUTO AND STRAIT_SANITIZE)
  set(found "not compiled with a sanitizer")
else()
  find_program(STRAIT_NVCC_PROGRAM nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(STRAIT_NVCC_PROGRAM)
    set(STRAIT_NVCC ${STRAIT_NVCC_PROGRAM})
  elseif(NOT STRAIT_CUDA STREQUAL AUTO)
    message(FATAL_ERROR "STRAIT_CUDA is ${STRAIT_CUDA} and there is no nvcc in PATH, CUDA_HOME or /usr/local/cuda")
  endif()
  set(found "not compiled, as there is no nvcc")
endif()
if(STRAIT_NVCC AND NOT STRAIT_TORCH_HAS_CUDA AND NOT STRAIT_TESTS)
  set(STRAIT_NVCC "")
  set(found "not compiled, as this LibTorch has no CUDA and there are no tests")
endif()
if(STRAIT_NVCC)
  execute_process(COMMAND ${STRAIT_NVCC} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCH "release ([0-9.]+)" version "${version}")
  list(TRANSFORM STRAIT_CUDA_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE names)
  list(JOIN names ", " names)
  set(found "compiled by nvcc ${CMAKE_MATCH_1} for ${names}")
  if(NOT STRAIT_TORCH_HAS_CUDA)
    string(APPEND found ", by the tests alone: this LibTorch has no CUDA")
  endif()
endif()
message(STATUS "CUDA kernels: ${found}")

# strait_cuda_objects(OUT FILE...): compiles .cu files of the calling folder, or .cpp files that call CUDA, and puts the names of the objects into OUT.
function(strait_cuda_objects out)
  set(targets "")
  foreach(architecture ${STRAIT_CUDA_ARCHITECTURES})
    list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET STRAIT_CUDA_ARCHITECTURES -1 newest)
  list(APPEND targets -gencode arch=compute_${newest},code=compute_${newest})
  set(options ${PROJECT_SOURCE_DIR}/strait/kernels/cuda/nvcc_options)
  set(host "")
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    set(host -ccbin ${CMAKE_CXX_COMPILER})
  endif()
  set(objects "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${STRAIT_NVCC} --options-file ${options} ${host} ${targets} -I${PROJECT_SOURCE_DIR}
              -MMD -MT ${object} -MF ${object}.d -c ${file} -o ${object}
      DEPENDS ${file} ${options} DEPFILE ${object}.d
      COMMENT "Building CUDA object ${name}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
