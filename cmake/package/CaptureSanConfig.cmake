# find_package(CaptureSan): the command, the simulated driver, the headers, and capturesan_add_test(). Everything is found
# from where this file lies, so an installation may be moved, and a build folder serves as one.
#
#   CaptureSan::capturesan   the command
#   CaptureSan::headers      capturesan.h and its companions; no library to link
#   CaptureSan::sim_cuda     the simulated libcuda.so.1, if it is there: to link a driver-API program without a GPU
#
#   capturesan_add_test(name target [DRIVER auto|real|sim] [LEVEL lite|full] [FAIL_ON error|warning|note]
#                       [BASELINE file] [SUPPRESS file] [RULES file...] [REPORTS format...] [OPTIONS option...]
#                       [ARGS argument...] [TIMEOUT seconds] [LABELS label...])
# adds a ctest that runs the target under `capturesan run`. It is red if CaptureSan finds something at or above FAIL_ON,
# if the program fails, and if nothing was captured. The driver is `sim` unless said otherwise, so no GPU is needed.
# Reports go to capturesan/<name>.<format> in the current binary folder, the trace to capturesan/<name>.

get_filename_component(CaptureSan_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(CaptureSan_COMMAND "${CaptureSan_PREFIX}/bin/capturesan")

foreach(_capturesan_part bin/capturesan lib/libcapturesan.so share/capturesan/rules)
  if(NOT EXISTS "${CaptureSan_PREFIX}/${_capturesan_part}")
    set(CaptureSan_FOUND FALSE)
    set(CaptureSan_NOT_FOUND_MESSAGE "${CaptureSan_PREFIX}/${_capturesan_part} is missing")
    return()
  endif()
endforeach()

if(NOT TARGET CaptureSan::capturesan)
  add_executable(CaptureSan::capturesan IMPORTED)
  set_target_properties(CaptureSan::capturesan PROPERTIES IMPORTED_LOCATION "${CaptureSan_COMMAND}")
endif()
if(NOT TARGET CaptureSan::headers)
  add_library(CaptureSan::headers INTERFACE IMPORTED)
  set_target_properties(CaptureSan::headers PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${CaptureSan_PREFIX}/include/capturesan")
endif()
if(NOT TARGET CaptureSan::sim_cuda AND EXISTS "${CaptureSan_PREFIX}/lib/sim/libcuda.so.1")
  add_library(CaptureSan::sim_cuda SHARED IMPORTED)
  set_target_properties(CaptureSan::sim_cuda PROPERTIES
    IMPORTED_LOCATION "${CaptureSan_PREFIX}/lib/sim/libcuda.so.1" IMPORTED_SONAME libcuda.so.1)
endif()

function(capturesan_add_test name target)
  set(single DRIVER LEVEL FAIL_ON BASELINE SUPPRESS TIMEOUT)
  set(several RULES REPORTS OPTIONS ARGS LABELS)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "${single}" "${several}")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "capturesan_add_test(${name}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()
  if(NOT TARGET ${target})
    message(FATAL_ERROR "capturesan_add_test(${name}): there is no target ${target}")
  endif()
  if(NOT arg_DRIVER)
    set(arg_DRIVER sim)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/capturesan")
  set(options --driver ${arg_DRIVER} -o "${folder}/${name}")
  foreach(option LEVEL FAIL_ON)
    if(arg_${option})
      string(TOLOWER ${option} word)
      string(REPLACE "_" "-" word ${word})
      list(APPEND options --${word} ${arg_${option}})
    endif()
  endforeach()
  foreach(option BASELINE SUPPRESS RULES)
    foreach(file IN LISTS arg_${option})
      string(TOLOWER ${option} word)
      get_filename_component(file "${file}" ABSOLUTE)
      list(APPEND options --${word} "${file}")
    endforeach()
  endforeach()
  foreach(format IN LISTS arg_REPORTS)
    list(APPEND options --report "${format}=${folder}/${name}.${format}")
  endforeach()
  file(MAKE_DIRECTORY "${folder}")
  # A trace is never written over an older one, so that one goes first.
  add_test(NAME ${name} COMMAND
    sh -c "rm -rf \"$0\" && exec \"$@\"" "${folder}/${name}"
    "${CaptureSan_COMMAND}" run ${options} ${arg_OPTIONS} -- $<TARGET_FILE:${target}> ${arg_ARGS})
  if(arg_TIMEOUT)
    set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
  endif()
  if(arg_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()
