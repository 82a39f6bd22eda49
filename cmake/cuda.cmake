# The CUDA kernels (strait/kernels/cuda), compiled by nvcc in commands of their own: CMake's CUDA language would try its
# compiler when the project is configured, and they need nothing of it. Flags are in strait/kernels/cuda/nvcc_options.
#
# STRAIT_CUDA: AUTO, where there is an nvcc that can; ON, which requires it; OFF. Sets STRAIT_NVCC, empty where nothing is
# compiled, and says in one line what is, or why not.

set(STRAIT_CUDA AUTO CACHE STRING "Compile the CUDA kernels: AUTO (where there is an nvcc that can), ON or OFF")
set_property(CACHE STRAIT_CUDA PROPERTY STRINGS AUTO ON OFF)
set(STRAIT_CUDA_ARCHITECTURES 75 80 86 89 90 100 CACHE STRING
    "What the CUDA kernels are compiled for, as far as nvcc can; the last one also as PTX")

# strait_try_nvcc(NVCC WHY_NOT): sets STRAIT_NVCC_VERSION, STRAIT_NVCC_ARCHITECTURES, those that it knows, and
# STRAIT_NVCC_OPTIONS, all that it is called with but the files; and WHY_NOT, empty where it compiles with them.
function(strait_try_nvcc nvcc why_not)
  set(${why_not} "" PARENT_SCOPE)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+)([.0-9]*)" text "${text}")
  set(major "${CMAKE_MATCH_1}")
  set(version "${CMAKE_MATCH_1}${CMAKE_MATCH_2}")
  set(STRAIT_NVCC_VERSION ${version} PARENT_SCOPE)
  if(STRAIT_TORCH_CUDA_VERSION AND NOT STRAIT_TORCH_CUDA_VERSION MATCHES "^${major}([.]|$)")
    # Two run-time libraries would share a process.
    set(${why_not} "nvcc ${version} is not of the CUDA ${STRAIT_TORCH_CUDA_VERSION} that this LibTorch has" PARENT_SCOPE)
    return()
  endif()

  execute_process(COMMAND ${nvcc} --list-gpu-arch OUTPUT_VARIABLE known ERROR_QUIET)
  set(architectures "")
  set(targets "")
  foreach(architecture ${STRAIT_CUDA_ARCHITECTURES})
    string(REGEX MATCH "^[0-9]+" number ${architecture})  # of 90a, which is not listed apart
    if(known MATCHES "compute_${number}([^0-9]|$)")
      list(APPEND architectures ${architecture})
      list(APPEND targets -gencode arch=compute_${architecture},code=sm_${architecture})
    endif()
  endforeach()
  if(NOT architectures)
    set(${why_not} "nvcc ${version} compiles for none of STRAIT_CUDA_ARCHITECTURES" PARENT_SCOPE)
    return()
  endif()
  list(GET architectures -1 newest)
  list(APPEND targets -gencode arch=compute_${newest},code=compute_${newest})
  set(options --options-file ${PROJECT_SOURCE_DIR}/strait/kernels/cuda/nvcc_options ${targets})
  if(STRAIT_WERROR)
    list(APPEND options -Werror all-warnings -Xcompiler=-Werror)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    list(APPEND options -ccbin ${CMAKE_CXX_COMPILER})
  endif()
  set(STRAIT_NVCC_ARCHITECTURES ${architectures} PARENT_SCOPE)
  set(STRAIT_NVCC_OPTIONS ${options} PARENT_SCOPE)

  set(tried ${nvcc} ${version} ${options})
  if(tried STREQUAL "${STRAIT_NVCC_TRIED}")
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/CMakeFiles/strait_nvcc)
  file(WRITE ${folder}/trial.cu "#include <string>
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
std::string name_of(cudaLaunchConfig_t shape, float* x) { return cudaGetErrorString(cudaLaunchKernelEx(&shape, fill, x)); }
")
  execute_process(COMMAND ${nvcc} ${options} -c ${folder}/trial.cu -o ${folder}/trial.o
                  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(failed)
    string(REGEX MATCH "[^\n]*(error|fatal)[^\n]*" reason "${said}")
    set(${why_not} "nvcc ${version} cannot compile with the C++ compiler and the options that they take: ${reason}" PARENT_SCOPE)
    return()
  endif()
  set(STRAIT_NVCC_TRIED "${tried}" CACHE INTERNAL "nvcc and the options with which it has compiled a file")
endfunction()

if(NOT STRAIT_CUDA)
  set(why_not "STRAIT_CUDA is OFF")
elseif(STRAIT_CUDA STREQUAL AUTO AND STRAIT_SANITIZE)
  set(why_not "there is a sanitizer")
elseif(NOT STRAIT_TORCH_HAS_CUDA AND NOT STRAIT_TESTS)
  set(why_not "this LibTorch has no CUDA and there are no tests")
elseif(STRAIT_TORCH_HAS_CUDA AND NOT STRAIT_TORCH_HAS_STREAM_HANDLES)
  set(why_not "LibTorch ${Torch_VERSION} does not give them its streams, which 2.11 and later do")
else()
  find_program(STRAIT_NVCC_PROGRAM nvcc HINTS ENV CUDA_HOME PATHS /usr/local/cuda PATH_SUFFIXES bin)
  if(STRAIT_NVCC_PROGRAM)
    strait_try_nvcc(${STRAIT_NVCC_PROGRAM} why_not)
  else()
    set(why_not "there is no nvcc in PATH, CUDA_HOME or /usr/local/cuda")
  endif()
endif()
if(NOT why_not)
  set(STRAIT_NVCC ${STRAIT_NVCC_PROGRAM})
  list(TRANSFORM STRAIT_NVCC_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE names)
  list(JOIN names ", " names)
  set(found "compiled by nvcc ${STRAIT_NVCC_VERSION} for ${names}")
  if(NOT STRAIT_TORCH_HAS_CUDA)
    string(APPEND found ", by the tests alone: this LibTorch has no CUDA")
  endif()
elseif(STRAIT_CUDA STREQUAL AUTO OR NOT STRAIT_CUDA)
  set(STRAIT_NVCC "")
  set(found "not compiled, as ${why_not}")
else()
  message(FATAL_ERROR "STRAIT_CUDA is ${STRAIT_CUDA}, and the CUDA kernels cannot be compiled: ${why_not}")
endif()
message(STATUS "CUDA kernels: ${found}")

# strait_cuda_objects(OUT FILE...): compiles .cu files of the calling folder, or .cpp files that call CUDA, and puts the names of the objects into OUT.
function(strait_cuda_objects out)
  set(options ${PROJECT_SOURCE_DIR}/strait/kernels/cuda/nvcc_options)
  set(objects "")
  foreach(file ${ARGN})
    get_filename_component(name ${file} NAME)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    # A name in a list of dependencies counts from the build folder, which may have a blank in its own.
    add_custom_command(OUTPUT ${object}
      COMMAND ${STRAIT_NVCC} ${STRAIT_NVCC_OPTIONS} -I${PROJECT_SOURCE_DIR}
              -MMD -MT ${name}.o -MF ${object}.d -c ${file} -o ${object}
      DEPENDS ${file} ${options} DEPFILE ${object}.d
      COMMENT "Building CUDA object ${name}.o" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${out} ${objects} PARENT_SCOPE)
endfunction()
