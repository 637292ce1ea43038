# capturesan_fatbin(TARGET SOURCE.cu SYMBOL): an object library that carries the kernels of SOURCE as one fatbin, reachable as
# `extern "C" const unsigned char SYMBOL[]` (for cuModuleLoadData). Machine code for sm_90 and sm_120, PTX for what comes after.
set(CAPTURESAN_GENCODE
    -gencode=arch=compute_90,code=sm_90 -gencode=arch=compute_120,code=sm_120 -gencode=arch=compute_90,code=compute_90)

function(capturesan_fatbin target source symbol)
  if(NOT CAPTURESAN_NVCC)
    message(FATAL_ERROR "nvcc not found. Run ./scripts/set-up, or pass -DCAPTURESAN_NVCC=<path>.")
  endif()
  set(fatbin ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.fatbin)
  set(assembly ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.S)
  add_custom_command(
    OUTPUT ${fatbin}
    COMMAND ${CAPTURESAN_NVCC} -std=c++17 -O2 ${CAPTURESAN_GENCODE} -fatbin -MD -MF ${fatbin}.d -o ${fatbin}
            ${CMAKE_CURRENT_SOURCE_DIR}/${source}
    MAIN_DEPENDENCY ${source} DEPFILE ${fatbin}.d
    COMMENT "Compiling kernels ${source}" VERBATIM)
  file(CONFIGURE OUTPUT ${assembly} @ONLY CONTENT [[
        .section .rodata
        .global @symbol@
        .type @symbol@, %object
        .balign 64
@symbol@:
        .incbin "@fatbin@"
        .size @symbol@, . - @symbol@
        .section .note.GNU-stack, "", %progbits
]])
  set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS ${fatbin})
  add_library(${target} OBJECT ${assembly} ${fatbin})
endfunction()
