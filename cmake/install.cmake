# What belongs beside the command, installed and in the build folder, which looks like an installation: bin/, lib/,
# lib/sim/, share/capturesan/rules, include/capturesan, lib/cmake/CaptureSan. Nothing in it holds an absolute path.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_BINARY_DIR}/lib/cmake/CaptureSan)
write_basic_package_version_file(${package}/CaptureSanConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
configure_file(${CMAKE_CURRENT_LIST_DIR}/package/CaptureSanConfig.cmake ${package}/CaptureSanConfig.cmake COPYONLY)
install(FILES ${package}/CaptureSanConfig.cmake ${package}/CaptureSanConfigVersion.cmake
        DESTINATION lib/cmake/CaptureSan COMPONENT capturesan)

install(TARGETS capturesan_cli RUNTIME DESTINATION bin COMPONENT capturesan)
if(TARGET capturesan_shim)
  install(TARGETS capturesan_shim LIBRARY DESTINATION lib COMPONENT capturesan)
endif()
foreach(library sim_cuda sim_cudart sim_cudart_static)
  if(TARGET ${library})
    install(TARGETS ${library} LIBRARY DESTINATION lib/sim COMPONENT capturesan ARCHIVE DESTINATION lib/sim COMPONENT capturesan)
  endif()
endforeach()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/rules/ DESTINATION share/capturesan/rules COMPONENT capturesan
        FILES_MATCHING PATTERN "*.yaml" PATTERN "*.json")
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ DESTINATION include/capturesan COMPONENT capturesan
        FILES_MATCHING PATTERN "*.h")
# Findings and messages name pages as docs/rules.md: there they are found by that name.
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/CHANGELOG.md
        DESTINATION share/doc/capturesan COMPONENT capturesan)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs/ DESTINATION share/doc/capturesan/docs COMPONENT capturesan
        FILES_MATCHING PATTERN "*.md" PATTERN "report-1.schema.json" PATTERN "measurements" EXCLUDE)
install(FILES ${CMAKE_SOURCE_DIR}/examples/ci/github-workflow.yml ${CMAKE_SOURCE_DIR}/examples/ci/gitlab-ci.yml
        DESTINATION share/doc/capturesan/examples/ci COMPONENT capturesan)

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share/capturesan ${CMAKE_BINARY_DIR}/include)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/rules ${CMAKE_BINARY_DIR}/share/capturesan/rules SYMBOLIC)
file(CREATE_LINK ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include/capturesan SYMBOLIC)
