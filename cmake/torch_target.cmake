# Makes strait::torch, which is LibTorch as strait and those who link it use it. The build and the installed package read
# this when they have found Torch and fmt. STRAIT_FIRST_INCLUDES is a folder that holds fmt's headers alone.

if(TARGET strait::torch)
  return()
endif()
add_library(strait::torch INTERFACE IMPORTED GLOBAL)
# The C++ library is searched before LibTorch: PyTorch's wheels show functions of std::filesystem that are those of the
# compiler they were built with, and where that of another one calls them, a program can crash.
target_link_libraries(strait::torch INTERFACE stdc++ ${TORCH_LIBRARIES})
# The include folders of PyTorch's wheels hold a fmt of another version.
target_include_directories(strait::torch SYSTEM INTERFACE ${STRAIT_FIRST_INCLUDES} ${TORCH_INCLUDE_DIRS})
separate_arguments(flags NATIVE_COMMAND "${TORCH_CXX_FLAGS}")
target_compile_options(strait::torch INTERFACE ${flags})

# LibTorch's parallel_for is a template: it shares work only where OpenMP is on.
find_package(OpenMP COMPONENTS CXX)
if(OpenMP_CXX_FOUND AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Not OpenMP::OpenMP_CXX: PyTorch's wheels bring a libgomp, and CMake warns of two.
  target_compile_options(strait::torch INTERFACE ${OpenMP_CXX_FLAGS})
  target_link_options(strait::torch INTERFACE ${OpenMP_CXX_FLAGS})
endif()
