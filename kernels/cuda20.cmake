# CMake 3.25 takes C++20 over from the C++ standard for CUDA, but does not know nvcc's flag for it. Include after
# enable_language(CUDA), in every folder with CUDA targets.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA_STANDARD_LATEST 20)
endif()
set(CMAKE_CUDA_STANDARD 20)
