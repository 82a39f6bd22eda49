# strait_torch_wheel(FOLDER): LibTorch as the torch folder of a Python has it, found by its files. Sets what
# find_package(Torch) sets, STRAIT_TORCH_HAS_CUDA and STRAIT_TORCH_CUDA_VERSION. PyTorch's own CMake package, where it has
# CUDA, enables CMake's CUDA language and asks for a toolkit with cuBLAS, cuFFT and more, which those who installed a wheel
# have inside the wheel.

macro(strait_torch_wheel folder)
  set(Torch_VERSION 0)
  set(STRAIT_TORCH_CUDA_VERSION "")
  if(EXISTS ${folder}/version.py)
    file(STRINGS ${folder}/version.py Torch_VERSION REGEX "^__version__ = ")
    string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+" Torch_VERSION "${Torch_VERSION}")
    file(STRINGS ${folder}/version.py STRAIT_TORCH_CUDA_VERSION REGEX "^cuda[ :=]")
    string(REGEX MATCH "[0-9]+[.][0-9]+" STRAIT_TORCH_CUDA_VERSION "${STRAIT_TORCH_CUDA_VERSION}")
  endif()
  set(TORCH_INSTALL_PREFIX ${folder})
  set(TORCH_INCLUDE_DIRS ${folder}/include ${folder}/include/torch/csrc/api/include)
  # libtorch.so is empty and needs the others, CUDA's too, which register themselves when they are loaded.
  # One item, so that nothing comes between; CMake leaves quotes in one to the shell.
  set(TORCH_LIBRARIES "-Wl,--no-as-needed,\"${folder}/lib/libtorch.so\",--as-needed" ${folder}/lib/libtorch_cpu.so
      ${folder}/lib/libc10.so)
  # Which of the C++ library's two strings it was compiled with. Later versions do not say: they use the compiler's.
  set(TORCH_CXX_FLAGS "")
  if(EXISTS ${folder}/share/cmake/Torch/TorchConfig.cmake)
    file(STRINGS ${folder}/share/cmake/Torch/TorchConfig.cmake TORCH_CXX_FLAGS REGEX "-D_GLIBCXX_USE_CXX11_ABI=[01]")
    string(REGEX MATCH "-D_GLIBCXX_USE_CXX11_ABI=[01]" TORCH_CXX_FLAGS "${TORCH_CXX_FLAGS}")
  endif()
  if(TORCH_CXX_FLAGS MATCHES "=0")
    message(FATAL_ERROR "The PyTorch ${Torch_VERSION} of ${folder} is compiled with the C++ library's old strings, with which Debian's "
                        "libraries are not; expected one with _GLIBCXX_USE_CXX11_ABI=1, as those of PyPI are from 2.7 on")
  endif()
  set(STRAIT_TORCH_HAS_CUDA FALSE)
  if(EXISTS ${folder}/lib/libtorch_cuda.so)
    set(STRAIT_TORCH_HAS_CUDA TRUE)
  endif()
endmacro()
