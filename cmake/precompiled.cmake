# Headers that most files of a target include, compiled once. Only a build from nothing gains by it (the preset ci); the other
# presets compile every file as it is, so that an #include that is missing is noticed.
option(CAPTURESAN_PRECOMPILE "Compile common headers once" OFF)

# capturesan_precompile(target header…)
function(capturesan_precompile target)
  if(CAPTURESAN_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()

set(CAPTURESAN_COMMON_HEADERS <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <set> <string> <vector>)
