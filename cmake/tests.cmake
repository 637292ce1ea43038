# Helpers for tests/. Labels in use: gpu (needs a real GPU; skipped elsewhere), nightly (long form; not in the default run).
option(CAPTURESAN_GPU "Run the tests labelled gpu; without it they are skipped" OFF)

# Exit code by which a test script says "skipped"; ctest then counts it as skipped, never as passed.
set(CAPTURESAN_SKIP 77)

find_package(Python3 3.9 REQUIRED COMPONENTS Interpreter)

# Target capturesan_catch: Catch2 with main(), version 2 or 3.
function(capturesan_find_catch)
  find_package(Catch2 QUIET)
  if(NOT Catch2_FOUND)
    message(FATAL_ERROR "Catch2 (version 2 or 3) not found. Run ./scripts/set-up.")
  endif()
  # catch_discover_tests of the version that was found; each folder needs it anew
  set(CMAKE_MODULE_PATH ${CMAKE_MODULE_PATH} ${Catch2_DIR} ${Catch2_DIR}/extras PARENT_SCOPE)
  if(TARGET capturesan_catch)
    return()
  endif()
  add_library(capturesan_catch STATIC ${CMAKE_SOURCE_DIR}/tests/support/catch_main.cpp)
  target_link_libraries(capturesan_catch PUBLIC capturesan_headers)
  if(TARGET Catch2::Catch2WithMain)
    target_link_libraries(capturesan_catch PUBLIC Catch2::Catch2WithMain)
  else()
    target_link_libraries(capturesan_catch PUBLIC Catch2::Catch2)
  endif()
endfunction()

# capturesan_catch_test(NAME SOURCES … [LIBRARIES …] [LABELS …] [ENVIRONMENT …])
# One program; every TEST_CASE in it becomes a ctest named NAME.<case>.
macro(capturesan_catch_test name)
  capturesan_find_catch()
  include(Catch)
  capturesan_catch_test_(${name} ${ARGN})
endmacro()

function(capturesan_catch_test_ name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES;LABELS;ENVIRONMENT" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE capturesan_catch capturesan_headers capturesan_warnings Threads::Threads
                                        ${arg_LIBRARIES})
  list(LENGTH arg_SOURCES files)
  if(files GREATER 2)
    capturesan_precompile(${name} ${CAPTURESAN_COMMON_HEADERS} "${CMAKE_SOURCE_DIR}/tests/support/catch.hpp")
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  set(properties TIMEOUT 120)
  if(arg_LABELS)
    list(APPEND properties LABELS "${arg_LABELS}")
  endif()
  if(arg_ENVIRONMENT)
    list(APPEND properties ENVIRONMENT "${arg_ENVIRONMENT}")
  endif()
  catch_discover_tests(${name} TEST_PREFIX "${name}." PROPERTIES ${properties})
endfunction()

# capturesan_script_test(NAME COMMAND … [LABELS …] [TIMEOUT seconds])
# A Python script; exit 0 passes, 77 skips with the reason it printed, everything else fails.
function(capturesan_script_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "COMMAND;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  add_test(NAME ${name} COMMAND Python3::Interpreter ${arg_COMMAND} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE ${CAPTURESAN_SKIP} TIMEOUT ${arg_TIMEOUT})
  if(arg_LABELS)
    set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}")
  endif()
endfunction()
