# One place for what every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

# bin/capturesan finds lib/libcapturesan.so and lib/sim/libcuda.so.1 relative to itself, built or installed.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(CAPTURESAN_CCACHE ccache)
if(CAPTURESAN_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${CAPTURESAN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CAPTURESAN_CCACHE})
endif()

find_package(Threads REQUIRED)

# Sources include each other from the top folder: #include "trace/event.h".
add_library(capturesan_headers INTERFACE)
target_include_directories(capturesan_headers INTERFACE ${CMAKE_SOURCE_DIR})
