# capturesan_runtime_program(NAME SOURCE.cu [PER_THREAD] [SEPARATE] [LIBRARY] [STATIC | NVIDIA] [FOLDER folder])
# A program of the CUDA runtime, compiled by nvcc, at TARGET NAME. Its runtime is found at run time as libcudart.so.13; STATIC:
# our libcudart_static.a; NVIDIA: the toolkit's static one, for a real driver. PER_THREAD: stream 0 is each thread's own.
# SEPARATE: relocatable device code. LIBRARY: a shared library. Objects are compiled once per set of flags.
set(CAPTURESAN_RUNTIME_GENCODE -gencode=arch=compute_90,code=[sm_90,compute_90])

set(nvcc_command ${CAPTURESAN_NVCC})
if(CAPTURESAN_CCACHE)
  list(PREPEND nvcc_command ${CAPTURESAN_CCACHE})
endif()

function(capturesan_runtime_program name source)
  cmake_parse_arguments(arg "PER_THREAD;SEPARATE;LIBRARY;STATIC;NVIDIA" "FOLDER" "" ${ARGN})
  set(flags -std=c++17 -g -O1 ${CAPTURESAN_RUNTIME_GENCODE} -I${CMAKE_SOURCE_DIR} -I${CMAKE_SOURCE_DIR}/include)
  set(link "")
  if(CAPTURESAN_SANITIZE STREQUAL "address") # as the libraries they meet
    set(link -Xcompiler=-fsanitize=address -Xcompiler=-fsanitize=undefined -Xcompiler=-fno-sanitize-recover=undefined)
  elseif(CAPTURESAN_SANITIZE)
    set(link -Xcompiler=-fsanitize=${CAPTURESAN_SANITIZE})
  endif()
  list(APPEND flags ${link})
  get_filename_component(object ${source} NAME_WE)
  if(arg_PER_THREAD)
    list(APPEND flags -default-stream per-thread)
    string(APPEND object _per_thread)
  endif()
  if(arg_SEPARATE)
    list(APPEND flags -rdc=true)
    string(APPEND object _separate)
  endif()
  if(arg_LIBRARY)
    list(APPEND flags -Xcompiler=-fPIC)
    list(APPEND link -shared)
  endif()
  set(object ${CMAKE_CURRENT_BINARY_DIR}/${object}.o)
  get_property(known GLOBAL PROPERTY CAPTURESAN_RUNTIME_OBJECTS)
  if(NOT object IN_LIST known)
    set_property(GLOBAL APPEND PROPERTY CAPTURESAN_RUNTIME_OBJECTS ${object})
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${nvcc_command} ${flags} -MD -MF ${object}.d -c -o ${object} ${CMAKE_CURRENT_SOURCE_DIR}/${source}
      MAIN_DEPENDENCY ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${source} with nvcc" VERBATIM)
  endif()
  set(kind shared)
  set(library sim_cudart)
  if(arg_STATIC OR arg_NVIDIA)
    set(kind static)
    set(library sim_cudart_static)
  endif()
  set(search -L${CMAKE_BINARY_DIR}/lib/sim)
  if(arg_NVIDIA)
    unset(search)
    set(library "")
  endif()
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  file(MAKE_DIRECTORY ${arg_FOLDER})
  set(program ${arg_FOLDER}/${name})
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${CAPTURESAN_NVCC} -g ${CAPTURESAN_RUNTIME_GENCODE} ${link} -cudart ${kind} ${search} -o ${program} ${object}
    DEPENDS ${object} ${library}
    COMMENT "Linking ${name}" VERBATIM)
  if(arg_NVIDIA)
    set(name ${name}_real)
  endif()
  add_custom_target(${name}_program ALL DEPENDS ${program})
endfunction()
