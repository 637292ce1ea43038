# CUDA 13 headers for shim and sim (target cuda13_headers). No CUDA library is linked.
#   CAPTURESAN_CUDA_INCLUDE   folder of cuda.h; found in the toolkit if that is CUDA 13, or set by scripts/set-up
set(CAPTURESAN_CUDA_INCLUDE "" CACHE PATH "Folder that holds cuda.h of CUDA 13")

function(capturesan_cuda_version folder out)
  set(${out} 0 PARENT_SCOPE)
  if(EXISTS ${folder}/cuda.h)
    file(STRINGS ${folder}/cuda.h line REGEX "^#define CUDA_VERSION [0-9]+")
    string(REGEX MATCH "[0-9]+$" number "${line}")
    set(${out} ${number} PARENT_SCOPE)
  endif()
endfunction()

if(NOT EXISTS "${CAPTURESAN_CUDA_INCLUDE}/cuda.h") # not set, or of a toolkit that is gone
  foreach(folder $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include /usr/local/cuda/include
                 ${CMAKE_SOURCE_DIR}/build/cuda/include)
    capturesan_cuda_version(${folder} version)
    if(version GREATER_EQUAL 13000 AND version LESS 14000)
      set(CAPTURESAN_CUDA_INCLUDE ${folder} CACHE PATH "Folder that holds cuda.h of CUDA 13" FORCE)
      break()
    endif()
  endforeach()
endif()
capturesan_cuda_version("${CAPTURESAN_CUDA_INCLUDE}" version)
if(NOT (version GREATER_EQUAL 13000 AND version LESS 14000))
  message(FATAL_ERROR "No CUDA 13 headers found. Run ./scripts/set-up, or pass -DCAPTURESAN_CUDA_INCLUDE=<folder of cuda.h>.")
endif()
message(STATUS "CUDA headers: ${CAPTURESAN_CUDA_INCLUDE} (${version})")
add_library(cuda13_headers INTERFACE)
target_include_directories(cuda13_headers SYSTEM INTERFACE ${CAPTURESAN_CUDA_INCLUDE})

# nvcc for kernels and examples: the one beside these headers if there is one, else whatever is installed.
if(NOT EXISTS "${CAPTURESAN_NVCC}")
  unset(CAPTURESAN_NVCC CACHE)
endif()
find_program(CAPTURESAN_NVCC nvcc HINTS ${CAPTURESAN_CUDA_INCLUDE}/../bin /usr/local/cuda/bin
             ${CMAKE_SOURCE_DIR}/build/cuda/bin DOC "CUDA compiler for kernels and examples")
